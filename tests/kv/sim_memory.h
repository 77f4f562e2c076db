// The memory of the simulation: pages whose rows hold digests.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/ids.h"

namespace pagoda::kv {

class SimMemory {
 public:
  SimMemory(std::uint32_t blocks, std::uint32_t block_tokens)
      : block_tokens_(block_tokens), rows_(std::size_t{blocks} * block_tokens, kNothing) {}

  static constexpr std::uint64_t kNothing = 0xDEADull;

  std::uint64_t& row(BlockId block, std::uint64_t token) {
    return rows_[std::size_t{block.value()} * block_tokens_ + token];
  }

 private:
  std::uint32_t block_tokens_;
  std::vector<std::uint64_t> rows_;  // [block, token]
};

}  // namespace pagoda::kv
