// The units of work of attention on CPUs, and how the results of splits become one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"
#include "kv/memory/view.h"
#include "model/batch.h"
#include "model/config.h"

namespace pagoda::model {

// The sequence and position of a batch row.
struct TokenOfSequence {
  const SequenceRows* sequence;
  std::uint64_t position;
};
// Consecutive rows of one sequence that attend together.
struct AttentionTile {
  kernels::Attention job;
  kernels::AttentionRows rows;
  std::size_t first_row;  // in the batch
  const float* sinks;     // partial results of all heads' sinks, or null
};
// One split of the keys of one tile for one KV head: a thread's unit of work.
struct SplitItem {
  std::uint32_t tile;
  kernels::KeySplit keys;
  std::size_t first_partial;  // in partials_
};
// The attention of a layer: what kernels are told, its heads, and where its rows are.
struct LayerAttention {
  kernels::Attention job;  // before the policies of sequences
  HeadShape heads;
  std::uint32_t queries;  // query heads
  std::uint32_t group;    // query heads per KV head
  kv::memory::LayerView view;
  std::uint32_t kv_group;  // whose block tables hold the rows
  const float* sinks;      // as in AttentionTile
};

// Merges the partials of one split into the totals of the rows that see it; for the first split
// that a row sees, they become its total. Later rows begin and end no earlier than those before
// them, so that rows which have seen a split before are adjacent.
void merge_split(const kernels::KernelSet& kernels, const LayerAttention& layer,
                 const AttentionTile& tile, std::uint64_t split, const float* partials,
                 float* totals);

}  // namespace pagoda::model
