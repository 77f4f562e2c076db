// Plans attention on a GPU: which thread block computes which query rows and keys. The plan is a
// pure function of shapes and positions.
//
// A tile is kQueryRows query rows of a sequence. With enough tiles for the whole GPU a thread block
// takes a tile through all its splits; with few, runs of splits are distributed, leave partial
// results and are merged in order. Sequences with many rows are cut into wide tiles instead, where
// there are enough of them and no row sees a gap. Every plan gives the same bits and differs in
// speed alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/ops.h"

namespace pagoda::model {

struct AttentionShape {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t window = 0;  // of the layers; 0: what their sequence sees
  std::uint32_t head_dim = 128;
  bool has_wide_tiles = true;  // where AttentionLimits allow them
};

inline constexpr std::uint32_t kNoWideTiles = ~0u;

struct AttentionLimits {
  std::uint32_t blocks = 132 * 2;         // thread blocks that run at once on the GPU
  std::uint32_t items = 1u << 16;         // capacity in items
  std::uint32_t merges = 1u << 10;        // capacity in tiles whose splits are distributed
  std::uint32_t partial_rows = 1u << 19;  // capacity in partial results, in query rows
  std::uint32_t wide_rows = 64;           // a sequence with this many query rows may use wide tiles
  // With fewer wide tiles than this over all KV heads, narrow ones are faster. kNoWideTiles: there
  // are none.
  std::uint32_t wide_blocks = 30;
};

// Memory is allocated once; fill() replaces the former plan.
struct AttentionPlan {
  std::vector<kernels::cuda::AttentionItem> items;
  std::vector<kernels::cuda::AttentionItem> merges;
  std::vector<kernels::cuda::AttentionItem> wide;  // items of wide tiles, the longest first

  void fill(std::span<const kernels::cuda::BatchSequence> sequences, const AttentionShape& shape,
            const AttentionLimits& limits);

 private:
  void fill_wide(std::span<const kernels::cuda::BatchSequence> sequences,
                 const AttentionShape& shape, const AttentionLimits& limits);
};

// Returns the number of tiles of a sequence with this many rows.
constexpr std::uint32_t query_tiles(std::uint32_t rows, std::uint32_t group,
                                    std::uint32_t tile_rows = kernels::cuda::kQueryRows) {
  return (rows * group + tile_rows - 1) / tile_rows;
}

}  // namespace pagoda::model
