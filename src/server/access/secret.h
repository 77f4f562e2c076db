// The server's secret: what salts are made with. Servers that share a store of blocks share it.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::server {

// The bytes of a file but for the line's end; 16 to 4096 of them. A file that others may read is
// refused.
Result<std::string> read_secret(const std::string& path);

// The same, and where there is no such file one is made, readable by its owner alone: of several
// servers that start at once all get the same.
Result<std::string> read_or_make_secret(const std::string& path);

}  // namespace pagoda::server
