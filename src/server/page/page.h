// The page at "/": the files of this folder, embedded at build time.
#pragma once

#include <string_view>

#include "server/http_reply.h"

namespace pagoda::server {

// `path` is "/", "/page.css" or "/page.js". The page loads nothing from other hosts, and its
// headers forbid it.
HttpReply page_reply(std::string_view path);

}  // namespace pagoda::server
