#include "model/sink_queries.h"

#include <algorithm>

#include "model/rotation.h"

namespace pagoda::model {

void SinkQueries::add(std::uint64_t position, const kv::memory::AttentionSpec& policy) {
  const std::uint64_t gap_begins = std::uint64_t{policy.sinks} + policy.window;
  const bool sees_gap = policy.sinks > 0 && position >= gap_begins;
  positions_.push_back(sees_gap ? gap_begins - 1 : kNoGap);
}

void SinkQueries::place(ThreadPool& pool) {
  any_ = std::ranges::any_of(positions_, [](std::uint64_t at) { return at != kNoGap; });
  if (!any_) return;
  if (!ropes_) ropes_.emplace(config_, divisors_, rows_max_);
  if (queries_.size() == 0) queries_.resize(rows_max_ * width_max_);
  ropes_->place(pool, positions_.size(), [this](std::size_t row) {
    return sees_gap(row) ? std::optional(positions_[row]) : std::nullopt;
  });
}

void SinkQueries::finish(std::uint32_t layer, const kv::memory::PageLayout& layout,
                         std::uint32_t heads, const std::optional<LatentAttention>& latent,
                         const float* queries, MatmulRunner& runner) {
  if (!any_) return;
  const std::size_t width = std::size_t{heads} * layout.key_dim;
  runner.for_rows(positions_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      if (!sees_gap(row)) continue;
      if (latent) {
        std::copy_n(queries + row * width, width, query(row, width));
        latent->rotate_queries(row, rope(layer, row), query(row, width));
      }
      rotate_queries(layout, query(row, width), heads);
    }
  });
}

void SinkQueries::attend(const kernels::Attention& job, const kernels::AttentionRows& rows,
                         std::size_t first_row, std::uint32_t kv_head, float* totals,
                         std::byte* memory) const {
  std::uint32_t first = 0;
  while (first < rows.rows && !sees_gap(first_row + first)) ++first;
  if (first == rows.rows) return;
  const kv::memory::PageLayout& layout = rows.view.layer.layout;
  const std::uint32_t group = job.heads / layout.kv_heads;
  const std::size_t floats = kernels::partial_floats(group, layout.value_dim);
  kernels::Attention sinks = job;
  sinks.keys = job.sinks;
  sinks.window = sinks.sinks = 0;
  auto* const partials = reinterpret_cast<float*>(memory);
  const std::size_t queries = std::max(kernels_.attention_queries, group);
  std::byte* const scratch =
      memory + kernels::partial_floats(queries, layout.value_dim) * sizeof(float);
  kernels::AttentionRows seen = rows;
  seen.q = queries_.data() + (first_row + first) * job.heads * layout.key_dim;
  seen.first_position += first;
  seen.rows -= first;
  const std::uint64_t splits =
      kernels::visible_splits(sinks, seen.first_position, kernels_.attention_split).last;
  for (std::uint64_t split = 0; split < splits; ++split) {
    kernels_.attend_split(sinks, seen, kv_head, split, scratch, partials);
    kernels_.merge_partials(totals + first * floats, partials, seen.rows * group, layout.value_dim);
  }
}

}  // namespace pagoda::model
