// The page at "/": files of this folder, put into the program when it is built.
#pragma once

#include <string_view>

#include "server/http_reply.h"

namespace pagoda::server {

// "/", "/page.css" or "/page.js". It loads nothing from elsewhere, and its headers see to that.
HttpReply page_reply(std::string_view path);

}  // namespace pagoda::server
