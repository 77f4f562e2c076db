// A running server, in numbers: its blocks, what is retained of them, and what other sizes of the
// cache would have given.
#pragma once

#include <string>

#include "base/result.h"
#include "net/server_access.h"

namespace pagoda::cli {

// Asks the server at `url` and prints what it says: for people, or one JSON value. The key, where
// it needs one, is an admin's.
Status inspect_server(const std::string& url, const net::ServerAccess& access, bool json);

}  // namespace pagoda::cli
