// A block's identity is a hash of 64 bits of its tokens and all before them, under a key that
// clients do not know (README: E4a): the block is known by it also after it left. A wrong one can
// cost a hit or a figure, never an answer.
#pragma once

#include <cstdint>
#include <span>

#include "base/token_id.h"
#include "kv/ids.h"

namespace pagoda::kv {

// Multiplies 128 bits wide and folds: one step of a chain that a client without the key cannot aim.
inline std::uint64_t mix_identity(std::uint64_t state, std::uint64_t value) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t sum = state + (value + 1) * 0x9E3779B97F4A7C15u;  // of zeros: not zero
  const Wide product = Wide{sum} * 0xD6E8FEB86659FD93u;
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

inline constexpr std::uint64_t kPublicKey = 0;  // of the public region

inline std::uint64_t root_identity(std::uint64_t key, NodeId root) {
  return mix_identity(key, root.value());
}

// Returns the identity of the block with these tokens below a block, or a root, of identity
// `above`. `region` is the key of its salt (SaltTable::key), since the salt's number may be
// another's by the time the block is looked for.
inline std::uint64_t block_identity(std::uint64_t above, std::uint64_t region,
                                    std::span<const TokenId> tokens) {
  std::uint64_t identity = mix_identity(above, region);
  for (const TokenId token : tokens) identity = mix_identity(identity, token.value());
  return identity;
}

}  // namespace pagoda::kv
