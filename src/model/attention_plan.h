// Who attends to what on a GPU, and in how many pieces: a pure function of shapes and positions.
//
// A tile is kQueryRows query rows of a sequence. With enough tiles for the whole chip a block takes
// a tile through all its splits; with few, runs of splits are shared out, leave partial results and
// are merged in order. Sequences with many rows are cut into wide tiles instead, where there are
// enough of them. Every way gives the same bits: the choice is one of speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/ops.h"

namespace pagoda::model {

struct AttentionShape {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t window = 0;  // 0: all keys
  std::uint32_t head_dim = 128;
};

inline constexpr std::uint32_t kNoWideTiles = ~0u;

struct AttentionLimits {
  std::uint32_t blocks = 132 * 2;         // at once on the chip
  std::uint32_t items = 1u << 16;         // room for items
  std::uint32_t merges = 1u << 10;        // room for tiles whose splits are shared out
  std::uint32_t partial_rows = 1u << 19;  // room for partial results, in query rows
  std::uint32_t wide_rows = 64;           // query rows of a sequence worth a wide tile
  // Wide tiles of all KV heads: with fewer, narrow ones are done sooner. kNoWideTiles: there are
  // none.
  std::uint32_t wide_blocks = 30;
};

// Memory is taken once; fill() replaces what was there.
struct AttentionPlan {
  std::vector<kernels::cuda::AttentionItem> items;
  std::vector<kernels::cuda::AttentionItem> merges;
  std::vector<kernels::cuda::AttentionItem> wide;  // in wide tiles, the longest first

  void fill(std::span<const kernels::cuda::BatchSequence> sequences, const AttentionShape& shape,
            const AttentionLimits& limits);

 private:
  void fill_wide(std::span<const kernels::cuda::BatchSequence> sequences,
                 const AttentionShape& shape, const AttentionLimits& limits);
};

// Tiles of a sequence with that many rows.
constexpr std::uint32_t query_tiles(std::uint32_t rows, std::uint32_t group,
                                    std::uint32_t tile_rows = kernels::cuda::kQueryRows) {
  return (rows * group + tile_rows - 1) / tile_rows;
}

}  // namespace pagoda::model
