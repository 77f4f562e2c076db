// The page at "/": the files of this folder, embedded at build time.
#pragma once

#include <string_view>
#include <vector>

#include "server/http_reply.h"

namespace pagoda::server {

// The page's files but page.html, which is "/", have paths that begin so.
inline constexpr std::string_view kPageFolder = "/page/";

// The paths of all files, "/" first.
std::vector<std::string> page_paths();

// Throws ApiError (404) for a path that is no file of the page. The page loads nothing from other
// hosts and runs nothing inline, and its headers forbid both.
HttpReply page_reply(std::string_view path);

}  // namespace pagoda::server
