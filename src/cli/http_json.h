// JSON from a running server, asked for once and waited for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/url.h"

namespace pagoda::cli {

// `api_key` may be empty. Both throw what Asio, Beast and the JSON parser throw, and
// std::runtime_error with what the server said where that is not 200.
nlohmann::ordered_json get_json(const Url& url, const std::string& api_key,
                                const std::string& path);
nlohmann::ordered_json post_json(const Url& url, const std::string& api_key,
                                 const std::string& path, const std::string& body);

}  // namespace pagoda::cli
