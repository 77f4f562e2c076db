// The forward pass on a GPU: tokens and pages in, sampled tokens and logits out.
//
// forward() and logits() launch work on the decoder's stream and return. A row's logits are a
// function of the tokens up to it and the weights; kernels/cuda/ops.h defines the numerics.
// create() allocates all memory.
//
// Thread rule: one thread. Host data of a step is copied out of the given spans before forward()
// returns, through one of two buffers, so that at most two steps may be in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lru_map.h"
#include "base/result.h"
#include "base/token_id.h"
#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "kv/memory/cache_groups.h"
#include "kv/memory/view.h"
#include "model/attention_plan.h"
#include "model/config.h"
#include "model/gpu_weights.h"

namespace pagoda::model {

// The number of CUDA graphs kept, each some MB of device memory for a model of 32 layers.
inline constexpr std::size_t kGraphsMax = 256;

struct GpuDecoderOptions {
  std::uint32_t rows_max = 2048;     // per step
  std::uint32_t sequences_max = 64;  // per step
  std::uint64_t context_tokens = 0;
  kv::memory::Element kv_element = kv::memory::Element::kBF16;
  std::uint32_t block_tokens = 16;
  bool graphs = true;  // decode steps are launched as a CUDA graph
};

// Consecutive rows of one sequence.
struct GpuRows {
  std::uint32_t rows = 0;
  std::uint64_t first_position = 0;
  std::span<const TokenId> tokens;  // [rows], or [rows - 1]
  // The last token where `tokens` lacks it: the token that sample `sampled_index` of the step
  // before gave, or, when that is kNotSampled, `last_token`.
  std::uint32_t sampled_index = kernels::cuda::kNotSampled;
  TokenId last_token = TokenId(0);
  std::span<const kv::memory::BlockTable> tables;  // one per group
};

class GpuDecoder {
 public:
  // The device must be open. An error names a setting that the GPU does not support (head sizes,
  // block sizes, KV elements) or the allocation that failed.
  static Result<std::unique_ptr<GpuDecoder>> create(const Config& config, GpuWeights weights,
                                                    std::span<const float> rope_divisors,
                                                    const GpuDecoderOptions& options);

  const Config& config() const { return config_; }
  const GpuDecoderOptions& options() const { return options_; }
  const kv::memory::PageLayout& page_layout() const { return page_layout_; }
  const kv::memory::CacheGroupPlan& group_plan() const { return group_plan_; }
  std::uint64_t weight_bytes() const { return weights_.bytes(); }
  std::uint32_t logit_rows_max() const { return options_.sequences_max; }
  device::Stream& stream() { return stream_; }

  // Checks that weights and rotary tables in device memory are as uploaded; their digest is the
  // same at every start.
  Status check_uploads();
  std::uint64_t uploads_digest() const { return weights_.uploads().digest(); }
  std::size_t graphs_kept() const { return graphs_.size(); }

  // Sets the address of the pages, before the first forward().
  void set_pages(std::byte* pages) { pages_ = pages; }

  // Computes the rows of a step, then the logits of `logit_rows` (at most logit_rows_max,
  // ascending), and samples tokens from them (at most logit_rows_max; GpuSamplingParams::row is one
  // of logit_rows).
  Status forward(std::span<const GpuRows> sequences, std::span<const std::uint32_t> logit_rows,
                 std::span<const kernels::cuda::GpuSamplingParams> samples = {});
  // Computes the logits of other rows of the last forward(). The stream must have been
  // synchronised.
  Status logits(std::span<const std::uint32_t> rows);

  // [logit_rows_max, vocabulary] of the last logits, and a token for each of the last samples.
  const float* logits_data() const { return logits_.as<float>(); }
  const std::uint32_t* sampled_tokens() const { return sampled_tokens_.as<std::uint32_t>(); }
  // For each sequence of the last forward(), until the next: 1 where a query, key or value was not
  // finite (kernels/cuda/ops.h, RopeAndStoreKv).
  const std::uint32_t* nonfinite() const { return step_at(layout_.nonfinite); }

 private:
  // Counts in words (uint32), and offsets of the arrays in the step's memory.
  struct StepLayout {
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
  // The launch parameters of a step besides its memory: the key of a CUDA graph.
  struct StepShape {
    std::uint32_t rows = 0;
    std::uint32_t logit_rows = 0;
    std::uint32_t samples = 0;
    std::vector<std::uint32_t> items;   // per group
    std::vector<std::uint32_t> merges;  // per group
    std::vector<std::uint32_t> wide;    // per group
    auto operator<=>(const StepShape&) const = default;
  };

  GpuDecoder(const Config& config, GpuWeights weights, device::Stream stream,
             const GpuDecoderOptions& options);
  Status take_memory(std::span<const float> rope_divisors);
  Status fill_rope(std::span<const float> divisors);
  StepShape write_step(std::span<const GpuRows> sequences,
                       std::span<const std::uint32_t> logit_rows, std::uint32_t* words);
  std::uint32_t write_samples(std::span<const kernels::cuda::GpuSamplingParams> samples,
                              bool decodes, std::uint32_t* words);
  void write_rows(std::span<const GpuRows> sequences, std::uint32_t* words);
  Status send_step(const std::uint32_t* words, const StepShape& shape);
  Status launch_step(const StepShape& shape);
  Status launch_as_graph(const StepShape& shape);
  Result<device::Graph> capture(const StepShape& shape);
  void launch_layer(std::uint32_t layer, const StepShape& shape);
  void launch_attention(std::uint32_t layer, const StepShape& shape);
  void launch_logits(std::uint32_t rows, std::uint32_t samples);
  void multiply(const GpuProjection& by, const device::Buffer& activations, std::uint32_t rows,
                kernels::cuda::Epilogue epilogue, float* out, std::size_t stride);

  const std::uint32_t* step_at(std::size_t word) const { return step_.as<std::uint32_t>() + word; }

  const Config& config_;
  GpuWeights weights_;
  device::Stream stream_;
  GpuDecoderOptions options_;
  kv::memory::CacheGroupPlan group_plan_;
  kv::memory::PageLayout page_layout_;
  std::byte* pages_ = nullptr;
  StepLayout layout_;
  AttentionLimits limits_;
  std::vector<AttentionPlan> plans_;  // per group
  std::vector<kernels::cuda::BatchSequence> sequences_;
  std::uint32_t table_words_used_ = 0;
  LruMap<StepShape, device::Graph> graphs_{kGraphsMax};
  std::uint32_t steps_without_graphs_ = 0;

  device::Buffer residual_;  // [rows_max, width] fp32
  device::Buffer normed_;    // activations of width
  device::Buffer qkv_;       // [rows_max, (heads + 2 kv_heads) * head_dim] fp32
  device::Buffer query_;     // [rows_max, heads, head_dim] of the KV element (fp8: fp16)
  device::Buffer mixed_;     // activations of heads * head_dim
  device::Buffer hidden_;    // activations of hidden_width
  device::Buffer logits_;
  device::Buffer sampled_tokens_;
  device::Buffer partials_;
  device::Buffer cosines_;  // [context, pairs]
  device::Buffer sines_;
  device::Buffer step_;
  device::PinnedBuffer step_host_[2];
  std::uint32_t step_turn_ = 0;
};

}  // namespace pagoda::model
