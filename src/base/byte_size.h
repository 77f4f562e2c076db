// Byte sizes are parsed as people write them ("4096", "512MB", "1.1GiB") and formatted as people
// read them ("64.00 GiB").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda {

// Parses plain bytes, or a number with KB MB GB TB (of 1000), KiB MiB GiB TiB (1024, in any case)
// or K M G T (as capitals: of 1024), with an optional blank before the unit. Decimals are rounded
// down to whole bytes. Negative sizes, less than a byte and overflow are errors.
Result<std::uint64_t> parse_byte_size(std::string_view text);

// Formats with the largest binary unit that leaves at least 1 and two decimals: "16.00 GiB", "512
// B".
std::string format_byte_size(double bytes);

// Writes digits in groups of three: 68,719,476,736.
std::string format_grouped(std::uint64_t value);

}  // namespace pagoda
