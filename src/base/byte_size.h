// Sizes as people write them: "4096", "512MB", "1.5GiB"; and as people read them: "64.00 GiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda {

// Plain bytes, or a number with KB MB GB TB (powers of 1000) or KiB MiB GiB TiB (of 1024), any
// case, optional blank before the unit. Negative, fractional bytes and overflow are errors.
Result<std::uint64_t> parse_byte_size(std::string_view text);

// The largest binary unit that leaves at least 1, two decimals: "16.00 GiB", "512 B".
std::string format_byte_size(double bytes);

// Digits in groups of three: 68,719,476,736.
std::string format_grouped(std::uint64_t value);

}  // namespace pagoda
