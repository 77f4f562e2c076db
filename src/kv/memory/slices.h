// Layers cut into slices whose pages have one size.
//
// Layers that keep the same rows (all tokens, the last W - 1, or a latent row per token) form a
// kind. Every kind is cut into slices of as many of its layers as fit into a page, and the page
// size is the one at which a token costs least over all slices, the largest of those. Where sizes
// divide nothing is left over: 15 window and 3 full layers give five window slices and one full
// slice, of 3 layers each. So one pool serves every slice of every kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// Which tokens a layer keeps: the last `window - 1` before each query, or all when 0.
struct LayerReach {
  std::uint32_t window = 0;
  auto operator<=>(const LayerReach&) const = default;
};

// What one layer keeps. A latent layer reaches as far as a full one: only its rows differ.
struct LayerKind {
  LayerReach reach;
  PageLayout layout;  // of this layer alone: one layer, nothing unused
  auto operator<=>(const LayerKind&) const = default;
};

struct LayerPlace {
  std::uint32_t slice;
  std::uint32_t layer;  // within the slice
};

struct SlicePlan {
  std::vector<LayerReach> slices;   // which tokens each slice keeps
  std::vector<PageLayout> layouts;  // of each slice's pages, all of the same bytes
  std::vector<LayerPlace> places;   // of each model layer
};

// The first block that a sequence of `tokens` tokens still reads: its next query sees the last
// window - 1 of them.
constexpr std::uint64_t first_block_kept(LayerReach reach, std::uint64_t tokens,
                                         std::uint32_t block_tokens) {
  if (reach.window == 0 || tokens + 1 <= reach.window) return 0;
  return (tokens + 1 - reach.window) / block_tokens;
}

SlicePlan plan_slices(std::span<const LayerKind> layers);

}  // namespace pagoda::kv::memory
