// Attention to sink tokens: the first tokens of a sequence whose KV policy keeps them beside a
// window (kernels/ops.h, Attention). A row whose window has left them behind sees a gap; it looks
// at them with a query of its own, as at the last position that sees sinks and window without a
// gap.
//
// Thread rule: as Decoder; place() takes memory when a row first sees a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "kv/memory/cache_groups.h"
#include "model/batch_ropes.h"
#include "model/latent_attention.h"
#include "model/matmul_runner.h"

namespace pagoda::model {

class SinkQueries {
 public:
  // Queries of a row have at most `width_max` floats. Config and kernels must outlive the object;
  // `divisors` are those of BatchRopes.
  SinkQueries(const Config& config, const kernels::KernelSet& kernels,
              std::span<const float> divisors, std::size_t rows_max, std::size_t width_max)
      : config_(config),
        kernels_(kernels),
        divisors_(divisors.begin(), divisors.end()),
        rows_max_(rows_max),
        width_max_(width_max) {}

  // A batch begins: rows are told one by one, then place() computes their angles.
  void clear() { positions_.clear(); }
  void add(std::uint64_t position, const kv::memory::AttentionSpec& policy);
  void place(ThreadPool& pool);

  // Does the row see a gap, in layers without a window of their own?
  bool sees_gap(std::size_t row) const { return any_ && positions_[row] != kNoGap; }
  // As at which position it looks at its sinks.
  std::uint64_t position(std::size_t row) const { return positions_[row]; }
  kernels::RopeRow rope(std::uint32_t layer, std::size_t row) const {
    return ropes_->row(layer, row);
  }
  // Its queries at them, in a layer whose queries of a row have `width` floats.
  float* query(std::size_t row, std::size_t width) { return queries_.data() + row * width; }

  // Rotates the queries of latents, which are `queries` ([rows, heads, key_dim]) but for that, and
  // turns all as the layer's keys are stored. Those of other layers are rotated where their queries
  // are.
  void finish(std::uint32_t layer, const kv::memory::PageLayout& layout, std::uint32_t heads,
              const std::optional<LatentAttention>& latent, const float* queries,
              MatmulRunner& runner);

  // Adds the sinks of rows that see a gap, the last of `rows`, to their totals. The first of the
  // rows is row `first_row` of the batch. `memory` has room for the partials of a tile and for
  // kernels.
  void attend(const kernels::Attention& job, const kernels::AttentionRows& rows,
              std::size_t first_row, std::uint32_t kv_head, float* totals, std::byte* memory) const;

 private:
  static constexpr std::uint64_t kNoGap = std::numeric_limits<std::uint64_t>::max();

  const Config& config_;
  const kernels::KernelSet& kernels_;
  std::vector<float> divisors_;
  std::size_t rows_max_;
  std::size_t width_max_;
  std::vector<std::uint64_t> positions_;  // [row]: kNoGap, or as at which it looks at its sinks
  bool any_ = false;
  std::optional<BatchRopes> ropes_;
  LargeArray<float> queries_;  // [rows_max, width of a layer]
};

}  // namespace pagoda::model
