// Layers cut into groups whose pages have one size.
//
// Layers that keep the same rows (all tokens, the last W - 1, or a latent row per token) form a
// kind. Every kind is cut into groups of as many of its layers as fit into a page, and the page
// size is the one at which a token costs least over all groups, the largest of those. Where sizes
// divide nothing is left over: 15 window and 3 full layers give five window groups and one full
// group, of 3 layers each. So one pool serves every group of every kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// A layer keeps the last `window - 1` tokens before each query, or all tokens when 0.
struct AttentionSpec {
  std::uint32_t window = 0;
  auto operator<=>(const AttentionSpec&) const = default;
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

// The first block that a sequence of `tokens` tokens still reads: its next query sees the last
// window - 1 of them.
constexpr std::uint64_t first_block_kept(AttentionSpec spec, std::uint64_t tokens,
                                         std::uint32_t block_tokens) {
  if (spec.window == 0 || tokens + 1 <= spec.window) return 0;
  return (tokens + 1 - spec.window) / block_tokens;
}

// How many pages it takes to load the blocks of `tokens` tokens behind the first `blocks_matched`:
// in window groups only those that a query behind the tokens sees.
std::uint64_t pages_to_load(std::span<const AttentionSpec> groups, std::uint32_t block_tokens,
                            std::uint64_t blocks_matched, std::uint64_t tokens);

CacheGroupPlan plan_cache_groups(std::span<const LayerKind> layers);

}  // namespace pagoda::kv::memory
