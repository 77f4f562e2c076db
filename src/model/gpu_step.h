// The inputs of a step on a GPU: tokens, positions, block tables, attention items, rows of logits,
// sampling parameters. They are written into pinned memory, copied to the device at once and read
// there by the kernels, so that a captured graph serves every step of its shape.
//
// Thread rule: one thread. Two host buffers take turns, so that at most two steps may be in flight.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "kv/memory/cache_groups.h"
#include "kv/memory/view.h"
#include "model/attention_plan.h"

namespace pagoda::model {

// Consecutive rows of one sequence.
struct GpuRows {
  std::uint32_t rows = 0;
  std::uint64_t first_position = 0;
  std::span<const TokenId> tokens;  // [rows - drafts], or one less
  // The last token where `tokens` lacks it: the token that sample `sampled_index` of the step
  // before gave, or, when that is kNotSampled, `last_token`.
  std::uint32_t sampled_index = kernels::cuda::kNotSampled;
  TokenId last_token = TokenId(0);
  std::span<const TokenId> drafts = {};            // behind the last token; counted in `rows`
  std::span<const kv::memory::BlockTable> tables;  // one per group
  kv::memory::AttentionSpec policy = {};           // what layers without a window of their own see
};

// The launch parameters of a step besides its memory: the key of a CUDA graph.
struct GpuStepShape {
  std::uint32_t rows = 0;
  std::uint32_t logit_rows = 0;
  std::uint32_t samples = 0;
  // One token a sequence, and its draft, and no wide tiles: launched as a CUDA graph.
  bool decodes = false;
  std::vector<std::uint32_t> items;   // per group
  std::vector<std::uint32_t> merges;  // per group
  std::vector<std::uint32_t> wide;    // per group
  auto operator<=>(const GpuStepShape&) const = default;
};

// The most that a step has.
struct GpuStepLimits {
  std::uint32_t rows_max = 0;
  std::uint32_t sequences_max = 0;
  std::uint32_t logit_rows_max = 0;
  std::uint64_t context_tokens = 0;
  std::uint32_t block_tokens = 16;
  std::vector<AttentionShape> attention = {};  // per group

  // Tokens whose blocks a sequence has in its tables, besides those of a step's rows.
  std::uint64_t table_tokens() const;
};

// Returns the rows that a decode step of `rows` rows is launched with: a few sizes, so that there
// are few graphs.
std::uint32_t launched_rows(std::uint32_t rows);

// How many of the ascending `rows`, from the first, follow one another without a gap.
std::uint32_t consecutive_rows(std::span<const std::uint32_t> rows);

class GpuStep {
 public:
  Status take_memory(const GpuStepLimits& limits);

  // Writes a step into host memory; spans may go when it returns.
  GpuStepShape write(std::span<const GpuRows> sequences, std::span<const std::uint32_t> logit_rows,
                     std::span<const kernels::cuda::GpuSamplingParams> samples);
  // Copies what was written last to the device.
  Status send(device::Stream& stream, const GpuStepShape& shape) const;
  // Replaces the rows of logits on the device.
  Status send_logit_rows(device::Stream& stream, std::span<const std::uint32_t> rows);

  // Addresses on the device.
  const kernels::cuda::BatchToken* batch_tokens() const {
    return at<kernels::cuda::BatchToken>(layout_.batch_tokens);
  }
  const kernels::cuda::BatchSequence* sequences() const {
    return at<kernels::cuda::BatchSequence>(layout_.sequences);
  }
  const std::uint32_t* logit_rows() const { return at<std::uint32_t>(layout_.logit_rows); }
  const kernels::cuda::GpuSamplingParams* samples() const {
    return at<kernels::cuda::GpuSamplingParams>(layout_.samples);
  }
  std::uint32_t* nonfinite() const { return device_.as<std::uint32_t>() + layout_.nonfinite; }
  const std::uint32_t* tables(std::size_t group) const {
    return at<std::uint32_t>(layout_.tables + group * layout_.table_words);
  }
  // Counts of items, merges and wide items of a group.
  const std::uint32_t* item_counts(std::size_t group) const {
    return at<std::uint32_t>(group_items(group));
  }
  const kernels::cuda::AttentionItem* merges(std::size_t group) const {
    return at<kernels::cuda::AttentionItem>(group_items(group) + kCounts);
  }
  // Wide items follow the others.
  const kernels::cuda::AttentionItem* items(std::size_t group) const {
    return at<kernels::cuda::AttentionItem>(group_items(group) + kCounts +
                                            layout_.merges_max * kItemWords);
  }
  std::size_t partial_rows() const { return plan_limits_.front().partial_rows; }

 private:
  static constexpr std::size_t kCounts = 3;
  static constexpr std::size_t kItemWords =
      sizeof(kernels::cuda::AttentionItem) / sizeof(std::uint32_t);

  // Offsets of the arrays in words (uint32).
  struct Layout {
    std::size_t batch_tokens = 0;
    std::size_t sequences = 0;
    std::size_t logit_rows = 0;
    std::size_t samples = 0;
    std::size_t nonfinite = 0;  // uploaded as zeros, written by the step
    std::size_t items = 0;      // per group: three counts, merges, items, wide items
    std::size_t group_items = 0;
    std::size_t merges_max = 0;
    std::size_t items_max = 0;
    std::size_t tables = 0;  // per group: table_words
    std::size_t table_words = 0;
    std::size_t words = 0;
  };

  std::size_t group_items(std::size_t group) const {
    return layout_.items + group * layout_.group_items;
  }
  template <class T>
  const T* at(std::size_t word) const {
    return reinterpret_cast<const T*>(device_.as<std::uint32_t>() + word);
  }
  void lay_out();
  std::size_t wide_items_max() const;
  std::uint32_t write_rows(std::span<const GpuRows> sequences);
  kernels::cuda::BatchSequence sequence_of(const GpuRows& rows) const;
  void write_tables(const GpuRows& rows, const kernels::cuda::BatchSequence& sequence);
  void write_items(std::size_t group, GpuStepShape& shape);
  std::uint32_t write_samples(std::span<const kernels::cuda::GpuSamplingParams> samples,
                              bool decodes);

  GpuStepLimits limits_;
  std::vector<AttentionLimits> plan_limits_;  // per group
  Layout layout_;
  std::vector<AttentionPlan> plans_;  // per group
  std::vector<kernels::cuda::BatchSequence> sequences_;
  std::uint32_t table_words_used_ = 0;
  device::Buffer device_;
  device::PinnedBuffer host_[2];
  std::uint32_t turn_ = 0;
  std::uint32_t* words_ = nullptr;  // of the step written last
};

}  // namespace pagoda::model
