// JSON from a running server, asked for once and waited for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "net/server_access.h"
#include "net/url.h"

namespace pagoda::net {

// Both throw what Asio, Beast and the JSON parser throw, and
// std::runtime_error with what the server said where that is not 200.
nlohmann::ordered_json get_json(const Url& url, const ServerAccess& access,
                                const std::string& path);
nlohmann::ordered_json post_json(const Url& url, const ServerAccess& access,
                                 const std::string& path, const std::string& body);

}  // namespace pagoda::net
