// The memory of the simulation: pages and slots of a tier, whose rows hold digests; and the moves
// between them that are under way.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/tiers/mover.h"

namespace pagoda::kv {

class SimMemory {
 public:
  SimMemory(std::uint32_t blocks, std::uint32_t slots, std::uint32_t block_tokens)
      : block_tokens_(block_tokens),
        rows_(std::size_t{blocks} * block_tokens, kNothing),
        slots_(std::size_t{slots} * block_tokens, kNothing) {}

  static constexpr std::uint64_t kNothing = 0xDEADull;

  std::uint64_t& row(BlockId block, std::uint64_t token) {
    return rows_[std::size_t{block.value()} * block_tokens_ + token];
  }

  // Copies the first `tokens` rows.
  void carry(const Move& move, std::uint32_t tokens) {
    for (std::uint32_t t = 0; t < tokens; ++t) {
      std::uint64_t& inside = row(move.block, t);
      std::uint64_t& outside = slots_[std::size_t{move.slot.value()} * block_tokens_ + t];
      (move.direction == Direction::kOut ? outside : inside) =
          move.direction == Direction::kOut ? inside : outside;
    }
  }

 private:
  std::uint32_t block_tokens_;
  std::vector<std::uint64_t> rows_;   // [block, token]
  std::vector<std::uint64_t> slots_;  // [slot, token]
};

}  // namespace pagoda::kv
