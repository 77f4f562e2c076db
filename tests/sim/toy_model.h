// ToyModel is a model of a few lines whose outputs depend on every row it reads.
//
// The row of a position holds a digest of the tokens up to it. The next token is computed from the
// rows of the whole past (in a window group: of the window), read one by one through the block
// table, so that one row that is stale, foreign, shifted or gone changes the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/kv_policy.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::sim {

using Digest = std::uint64_t;

constexpr Digest mix(Digest a, std::uint64_t b) {
  std::uint64_t x = a ^ (b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2));
  x ^= x >> 31;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 29;
  return x;
}

struct ToyModel {
  std::vector<kv::memory::AttentionSpec> groups;
  std::uint32_t vocabulary = 8;

  static constexpr TokenId kEnd{0};

  // What stands before the first row: rows under a KV policy are no others'.
  static Digest start(const kv::memory::AttentionSpec& policy) {
    return policy.window == 0 ? 0 : mix(policy.window, policy.sinks);
  }
  // Once tokens were dropped, rows are others.
  static Digest row(Digest before, TokenId token, std::uint64_t dropped = 0) {
    const Digest digest = mix(before, token.value());
    return dropped == 0 ? digest : mix(digest, dropped);
  }
  // The attention that a key gets of a query, each given by its row.
  static std::uint64_t attention(Digest query, Digest key) { return mix(query, key) % 50; }

  // Returns what position `position` sees: `rows(group, slot)` is the row in that slot, of those
  // that are left of the group, and slot_of(group) that of the position.
  template <class SlotOf, class Rows>
  Digest look(std::uint64_t position, const kv::memory::AttentionSpec& policy, SlotOf&& slot_of,
              Rows&& rows) const {
    Digest seen = position;
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      const kv::memory::AttentionSpec spec = groups[group].window == 0 ? policy : groups[group];
      const std::uint64_t own = slot_of(group);
      for (std::uint64_t slot = 0; slot <= own; ++slot) {
        const bool visible = spec.window == 0 || slot + spec.window > own || slot < spec.sinks;
        if (visible) seen = mix(seen, rows(group, slot));
      }
    }
    return seen;
  }

  TokenId choose(Digest seen, std::uint64_t sample) const {
    return TokenId(static_cast<std::uint32_t>(mix(seen, sample) % vocabulary));
  }

  // Generates the output without a cache, a batch or a scheduler. The sequence has at most
  // `tokens_max` tokens; an end token ends it. Blocks are what policies drop.
  std::vector<TokenId> generate_single(std::span<const TokenId> prompt, std::uint64_t sample,
                                       std::uint64_t tokens_max, const kv::KvPolicy& policy = {},
                                       std::uint32_t block_tokens = 16) const;
};

}  // namespace pagoda::sim
