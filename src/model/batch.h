// One forward pass: rows of tokens from any number of sequences, in any mix of lengths.
#pragma once

#include <cstdint>
#include <span>

#include "base/token_id.h"
#include "kv/memory/cache_groups.h"
#include "kv/memory/selected_pages.h"
#include "kv/memory/view.h"

namespace pagoda::model {

// Consecutive rows of the batch that are consecutive tokens of one sequence. The tables must cover
// positions up to first_position + rows - 1; rows before first_position are already in the cache.
struct SequenceRows {
  std::uint32_t rows = 0;
  std::uint64_t first_position = 0;
  std::span<const kv::memory::BlockTable> tables;  // one per group
  // The mask of the sequence's KV policy, for layers without a window of their own.
  kv::memory::AttentionSpec policy = {};
  // Pages that a KV policy has left of the sequence, and the counters of those it observes.
  kv::memory::SelectedPages selected = {};
};

struct Batch {
  std::span<const TokenId> tokens;            // [rows], sequence after sequence
  std::span<const SequenceRows> sequences;    // their rows add up to tokens.size()
  std::span<const std::uint32_t> logit_rows;  // rows whose logits are computed
};

}  // namespace pagoda::model
