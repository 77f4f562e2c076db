#include "model/attention_plan.h"

#include <algorithm>
#include <bit>

namespace pagoda::model {
namespace {

using kernels::cuda::AttentionItem;
using kernels::cuda::BatchSequence;
using kernels::cuda::kQueryRows;
using kernels::cuda::kSplitKeys;
using kernels::cuda::kWhole;
using kernels::cuda::SeenKeys;

struct TileSplits {
  std::uint32_t first;
  std::uint32_t last;
  std::uint32_t rows;   // query rows of the tile
  std::uint32_t sinks;  // splits of sinks, where a row sees a gap

  // How many partial results a query row may have.
  std::uint32_t count() const { return last - first + sinks; }
};

TileSplits splits_of(const BatchSequence& sequence, std::uint32_t tile, std::uint32_t tile_rows,
                     const AttentionShape& shape) {
  const std::uint32_t group = shape.heads / shape.kv_heads;
  const std::uint32_t first_token = tile * tile_rows / group;
  const std::uint32_t last_token =
      std::min(sequence.rows - 1, (tile * tile_rows + tile_rows - 1) / group);
  const std::uint32_t latest = sequence.first_position + last_token;
  const SeenKeys seen(shape.window, sequence);
  return {seen.first(sequence.first_position + first_token) / kSplitKeys, latest / kSplitKeys + 1,
          std::min(tile_rows, sequence.rows * group - tile * tile_rows),
          seen.has_gap(latest) ? seen.sink_splits() : 0};
}

// Visits the tiles of the sequences for which `takes` is true.
template <class Takes, class Visit>
void for_tiles(std::span<const BatchSequence> sequences, const AttentionShape& shape,
               std::uint32_t tile_rows, Takes&& takes, Visit&& visit) {
  const std::uint32_t group = shape.heads / shape.kv_heads;
  for (std::uint32_t s = 0; s < sequences.size(); ++s) {
    if (!takes(sequences[s])) continue;
    // The last tiles see the most keys, so that they begin first.
    for (std::uint32_t tile = query_tiles(sequences[s].rows, group, tile_rows); tile-- > 0;) {
      visit(s, tile, splits_of(sequences[s], tile, tile_rows, shape));
    }
  }
}

// A decoding sequence never uses wide tiles, however many heads it has, because its step may be a
// CUDA graph; nor does one with a row that sees a gap.
bool has_many_rows(const BatchSequence& sequence, const AttentionShape& shape,
                   const AttentionLimits& limits) {
  const std::uint32_t latest = sequence.first_position + sequence.rows - 1;
  if (SeenKeys(shape.window, sequence).has_gap(latest)) return false;
  return sequence.rows > 1 && sequence.rows * (shape.heads / shape.kv_heads) >= limits.wide_rows;
}

// Returns how many consecutive splits one thread block takes at most: few enough that all blocks of
// the GPU have work, and so many that the blocks' start-up, which takes as long as a split, does
// not dominate.
template <class Takes>
std::uint32_t best_run(std::span<const BatchSequence> sequences, const AttentionShape& shape,
                       const AttentionLimits& limits, Takes&& takes) {
  const auto for_own = [&](auto&& visit) {
    for_tiles(sequences, shape, kQueryRows, takes,
              [&](std::uint32_t, std::uint32_t, const TileSplits& tile) { visit(tile); });
  };
  std::uint32_t longest = 0;
  for_own([&](const TileSplits& tile) { longest = std::max(longest, tile.count()); });
  std::uint32_t best = longest;
  std::uint64_t best_cost = UINT64_MAX;
  for (std::uint32_t run = std::bit_ceil(longest); run > 0; run /= 2) {
    std::uint64_t items = 0;
    std::uint64_t merges = 0;
    std::uint64_t partial_rows = 0;
    for_own([&](const TileSplits& tile) {
      items += (tile.last - tile.first + run - 1) / run + (tile.sinks + run - 1) / run;
      if (tile.count() <= run) return;
      ++merges;
      partial_rows += std::uint64_t{tile.count()} * tile.rows * shape.kv_heads;
    });
    const bool fits =
        items <= limits.items && merges <= limits.merges && partial_rows <= limits.partial_rows;
    if (!fits) break;  // nor would shorter runs fit
    const std::uint64_t rounds = (items * shape.kv_heads + limits.blocks - 1) / limits.blocks;
    const std::uint64_t cost = rounds * (std::min(run, longest) + 1);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = run;
  }
  return best;
}

}  // namespace

void AttentionPlan::fill(std::span<const BatchSequence> sequences, const AttentionShape& shape,
                         const AttentionLimits& limits) {
  fill_wide(sequences, shape, limits);
  items.clear();
  merges.clear();
  const auto takes = [&](const BatchSequence& sequence) {
    return wide.empty() || !has_many_rows(sequence, shape, limits);
  };
  const std::uint32_t run = best_run(sequences, shape, limits, takes);
  std::uint32_t partial = 0;
  for_tiles(sequences, shape, kQueryRows, takes,
            [&](std::uint32_t sequence, std::uint32_t index, const TileSplits& tile) {
              if (tile.count() <= run) {
                items.push_back({sequence, index, tile.first, tile.last, kWhole});
                return;
              }
              merges.push_back({sequence, index, tile.first, tile.first + tile.count(), partial});
              for (std::uint32_t split = tile.first; split < tile.last; split += run) {
                const std::uint32_t end = std::min(tile.last, split + run);
                items.push_back({sequence, index, split, end, partial});
                partial += (end - split) * tile.rows * shape.kv_heads;
              }
              for (std::uint32_t split = 0; split < tile.sinks; split += run) {
                const std::uint32_t end = std::min(tile.sinks, split + run);
                items.push_back({sequence, index, split, end, partial, 1});
                partial += (end - split) * tile.rows * shape.kv_heads;
              }
            });
}

void AttentionPlan::fill_wide(std::span<const BatchSequence> sequences, const AttentionShape& shape,
                              const AttentionLimits& limits) {
  wide.clear();
  for_tiles(
      sequences, shape, kernels::cuda::wide_rows(shape.head_dim),
      [&](const BatchSequence& sequence) { return has_many_rows(sequence, shape, limits); },
      [&](std::uint32_t sequence, std::uint32_t index, const TileSplits& tile) {
        wide.push_back({sequence, index, tile.first, tile.last, kWhole});
      });
  if (wide.size() * shape.kv_heads < limits.wide_blocks) return wide.clear();
  const auto splits = [](const AttentionItem& item) { return item.last_split - item.first_split; };
  std::stable_sort(wide.begin(), wide.end(), [&](const AttentionItem& a, const AttentionItem& b) {
    return splits(a) > splits(b);
  });
}

}  // namespace pagoda::model
