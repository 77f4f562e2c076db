// Layers cut into groups whose pages have one size.
//
// Layers that keep the same rows (all tokens, the last W - 1, or a latent row per token) form a
// kind. Every kind is cut into groups of as many of its layers as fit into a page, and the page
// size is the one at which a token costs least over all groups, the largest of those. Where sizes
// divide nothing is left over: 15 window and 3 full layers give five window groups and one full
// group, of 3 layers each. So one pool serves every group of every kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// A layer keeps the last `window - 1` tokens before each query and the first `sinks` tokens
// (attention sinks), or all tokens when `window` is 0.
struct AttentionSpec {
  std::uint32_t window = 0;
  std::uint32_t sinks = 0;  // without a window 0
  auto operator<=>(const AttentionSpec&) const = default;

  // Blocks whose tokens are sinks: they are kept wherever the window is.
  constexpr std::uint64_t sink_blocks(std::uint32_t block_tokens) const {
    return (std::uint64_t{sinks} + block_tokens - 1) / block_tokens;
  }
};

// The rows that one layer keeps. A latent layer sees as many tokens as a full one: only its rows
// differ.
struct LayerKind {
  AttentionSpec attention;
  PageLayout layout;  // of this layer alone: one layer, nothing unused
  auto operator<=>(const LayerKind&) const = default;
};

struct LayerLocation {
  std::uint32_t group;
  std::uint32_t layer;  // within the group
};

struct CacheGroupPlan {
  std::vector<AttentionSpec> groups;     // which tokens each group keeps
  std::vector<PageLayout> layouts;       // of each group's pages, all of the same bytes
  std::vector<LayerLocation> locations;  // of each model layer
};

// The first block behind the sinks that a sequence of `tokens` tokens still reads: its next query
// sees the last window - 1 of them. 0 while window and sinks are all there is.
constexpr std::uint64_t first_block_kept(AttentionSpec spec, std::uint64_t tokens,
                                         std::uint32_t block_tokens) {
  if (spec.window == 0 || tokens + 1 <= std::uint64_t{spec.window} + spec.sinks) return 0;
  return (tokens + 1 - spec.window) / block_tokens;
}

// Which blocks a sequence of `tokens` tokens still reads: those of the sinks, and those from
// `first`.
struct BlocksKept {
  constexpr BlocksKept(AttentionSpec spec, std::uint64_t tokens, std::uint32_t block_tokens)
      : sinks(spec.sink_blocks(block_tokens)),
        first(first_block_kept(spec, tokens, block_tokens)) {}

  constexpr bool contains(std::uint64_t block) const { return block < sinks || block >= first; }
  // How many of the blocks [begin, end) are read.
  constexpr std::uint64_t count(std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t gap_begin = std::clamp(sinks, begin, std::max(begin, end));
    const std::uint64_t gap_end = std::clamp(first, gap_begin, std::max(gap_begin, end));
    return std::max(begin, end) - begin - (gap_end - gap_begin);
  }

  std::uint64_t sinks;
  std::uint64_t first;
};

// How many pages it takes to load the blocks of `tokens` tokens behind the first `blocks_matched`:
// in groups with a window only those that a query behind the tokens sees.
std::uint64_t pages_to_load(std::span<const AttentionSpec> groups, std::uint32_t block_tokens,
                            std::uint64_t blocks_matched, std::uint64_t tokens);

CacheGroupPlan plan_cache_groups(std::span<const LayerKind> layers);

}  // namespace pagoda::kv::memory
