// Reads the key that stores encrypt with from a file.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/result.h"

namespace pagoda::store {

using SecretKey = std::array<std::byte, 32>;

// The file holds 32 bytes, or 64 hexadecimal digits and perhaps a line's end. A file that others
// may read is refused.
Result<SecretKey> read_key_file(const std::string& path);

}  // namespace pagoda::store
