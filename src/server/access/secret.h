// The server's secret, the HMAC key of salts. Servers that share a store share the secret.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::server {

// Reads 16 to 4096 bytes from a file, without the line end. A file that others may read is refused.
Result<std::string> read_secret(const std::string& path);

// Reads the file, or creates one that its owner alone can read: servers that start at the same time
// all get the same secret.
Result<std::string> read_or_make_secret(const std::string& path);

}  // namespace pagoda::server
