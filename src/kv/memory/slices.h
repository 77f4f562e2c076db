// Layers cut into slices of equal size.
//
// Layers that keep the same tokens (all of them, or the last W - 1) form a kind. Each kind is cut
// into slices of the same number of layers, the greatest that divides every kind: 15 window and
// 3 full layers give five window slices and one full slice, of 3 layers each. So every page of
// every slice has the same size, and one pool serves them all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda::kv::memory {

// What one layer keeps: the last `window - 1` tokens before each query, or all when 0.
struct LayerReach {
  std::uint32_t window = 0;
  auto operator<=>(const LayerReach&) const = default;
};

struct LayerPlace {
  std::uint32_t slice;
  std::uint32_t layer;  // within the slice
};

struct SlicePlan {
  std::uint32_t layers_per_slice = 0;
  std::vector<LayerReach> slices;  // what each slice keeps
  std::vector<LayerPlace> places;  // of each model layer
};

// The first block that a sequence of `tokens` tokens still reads: its next query sees the last
// window - 1 of them.
constexpr std::uint64_t first_block_kept(LayerReach reach, std::uint64_t tokens,
                                         std::uint32_t block_tokens) {
  if (reach.window == 0 || tokens + 1 <= reach.window) return 0;
  return (tokens + 1 - reach.window) / block_tokens;
}

SlicePlan plan_slices(std::span<const LayerReach> layers);

}  // namespace pagoda::kv::memory
