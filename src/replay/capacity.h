// How large a replayed cache is, as people write it: "5%" of the trace's different blocks, "2000"
// blocks, "16GiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::replay {

struct Capacity {
  std::string text;              // as written
  std::uint64_t share_e8 = 0;    // in 10^-8 of the different blocks: 1% is 1,000,000
  std::uint64_t blocks_set = 0;  // when there is no share

  // A share is rounded down, but to no less than one block.
  std::uint64_t blocks(std::uint64_t unique_blocks) const;
};

// Items between commas. block_bytes turns sizes into blocks, rounded down; 0: not known, and a size
// is an error.
Result<std::vector<Capacity>> parse_capacities(std::string_view list, std::uint64_t block_bytes);

}  // namespace pagoda::replay
