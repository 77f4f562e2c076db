// A running server, in numbers: its blocks, what is retained of them, and what other sizes of the
// cache would have given.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "net/server_access.h"

namespace pagoda::inspect {

// Asks the server at `url` and prints what it says: for people, or one JSON value. The key, where
// it needs one, is an admin's.
Status inspect_server(const std::string& url, const net::ServerAccess& access, bool json);

// The reply of GET /cache/curve as tables, in which no figure stands twice; empty where nothing was
// looked up.
std::string curve_text(const nlohmann::ordered_json& curve);

// The advice of a curve's reply, a line each; empty where there is none, as of servers that give
// none.
std::string advice_text(const nlohmann::ordered_json& curve);

// Blocks, and what is retained of them: the replies of GET /server_info and /cache/retained.
std::string blocks_text(const nlohmann::ordered_json& info, const nlohmann::ordered_json& retained);

}  // namespace pagoda::inspect
