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
#include "device/device.h"
#include "kernels/cuda/ops.h"
#include "kv/memory/cache_groups.h"
#include "model/config.h"
#include "model/gpu_feed_forward.h"
#include "model/gpu_latent_attention.h"
#include "model/gpu_step.h"
#include "model/gpu_weights.h"
#include "model/kv_cache_dtype.h"
#include "model/rope.h"

namespace pagoda::model {

// The number of CUDA graphs kept, each some MB of device memory for a model of 32 layers.
inline constexpr std::size_t kGraphsMax = 256;

struct GpuDecoderOptions {
  std::uint32_t rows_max = 2048;     // per step
  std::uint32_t sequences_max = 64;  // per step
  std::uint32_t draft_rows_max = 0;  // per step, besides a row of logits for each sequence
  std::uint64_t context_tokens = 0;
  KvCacheDtype kv_cache_dtype = {};  // by default bf16
  std::uint32_t block_tokens = 16;
  bool graphs = true;  // decode steps are launched as a CUDA graph
};

class GpuDecoder {
 public:
  // The device must be open. An error names a setting that the GPU does not support (head sizes,
  // block sizes, KV elements) or the allocation that failed.
  static Result<std::unique_ptr<GpuDecoder>> create(const Config& config, GpuWeights weights,
                                                    std::span<const float> rope_divisors,
                                                    const GpuDecoderOptions& options);

  // The same errors before weights are uploaded.
  static Status check(const Config& config, const GpuDecoderOptions& options);

  const Config& config() const { return config_; }
  const GpuDecoderOptions& options() const { return options_; }
  // The layout of pages of the first group: those of others have the same size and tokens.
  const kv::memory::PageLayout& page_layout() const { return group_plan_.layouts.front(); }
  const kv::memory::CacheGroupPlan& group_plan() const { return group_plan_; }
  std::uint64_t weight_bytes() const { return weights_.bytes(); }
  std::uint32_t logit_rows_max() const { return options_.sequences_max + options_.draft_rows_max; }
  device::Stream& stream() { return stream_; }

  // Checks that weights and rotary tables in device memory are as uploaded; their digest is the
  // same at every start.
  Status check_uploads();
  std::uint64_t uploads_digest() const { return weights_.uploads().digest(); }
  std::size_t graphs_kept() const { return graphs_.size(); }
  std::uint64_t graphs_made() const { return graphs_made_; }

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

  // Computes the hidden states of these rows of the last forward(), ascending, after the last norm,
  // in fp32 (kernels/cuda/ops.h, row norm) and in the place of what logits are computed from: it is
  // the last thing that is asked of a step.
  Status hidden(std::span<const std::uint32_t> rows);
  // [rows of the step, width]: valid, in the stream's order, for rows of the last hidden().
  const float* hidden_data() const { return residual_.as<float>(); }

  // [logit_rows_max, vocabulary] of the last logits, and a token for each of the last samples.
  const float* logits_data() const { return logits_.as<float>(); }
  const std::uint32_t* sampled_tokens() const { return sampled_tokens_.as<std::uint32_t>(); }
  // For each sequence of the last forward(), until the next: the first row whose query, key or
  // value was not finite (kernels/cuda/ops.h, nonfinite_word).
  const std::uint32_t* nonfinite() const { return step_.nonfinite(); }
  // For tests: the experts that each row of the last forward() chose in the last layer that has
  // some, [rows, chosen].
  const kernels::ChosenExpert* chosen_experts() const { return feed_forward_.chosen(); }

 private:
  // A rotation in device memory, [context, pairs] each, and behind that [rows_max, pairs] of a
  // step's rows whose positions are beyond the context.
  struct GpuRope {
    RopeTable table;
    device::Buffer cosines;
    device::Buffer sines;
  };

  GpuDecoder(const Config& config, GpuWeights weights, device::Stream stream,
             const GpuDecoderOptions& options);
  Status take_memory();
  Status fill_ropes(std::span<const float> divisors);
  Status fill_query_factors();
  Status fill_far_rows(std::span<const GpuRows> sequences);
  Status send_floats(device::Buffer& to, const std::vector<float>& from, std::size_t row_floats);
  Status launch_step(const GpuStepShape& shape);
  Status launch_as_graph(const GpuStepShape& shape);
  Result<device::Graph> capture(const GpuStepShape& shape);

  // gpu_layers.cc
  void launch_layer(std::uint32_t layer, const GpuStepShape& shape);
  void launch_projections(std::uint32_t layer, std::uint32_t rows);
  void clear_unused(const kernels::cuda::RopeAndStoreKv& stored);
  kernels::cuda::RopeAndStoreKv stored_rows(std::uint32_t layer, std::uint32_t rows) const;
  void launch_attention(std::uint32_t layer, const GpuStepShape& shape);
  void rotate_back(const kernels::cuda::PagedAttention& job);
  void launch_feed_forward(std::uint32_t layer, std::uint32_t rows);
  void launch_logits(std::uint32_t rows, std::uint32_t samples);
  void normalise(const float* weight, std::uint32_t rows, const device::Buffer& to);
  // Adds x times the projection, normed and scaled where the model does that, to the residual
  // stream, and multiplies that by `output_scale`.
  void add_branch(const GpuProjection& projection, const kernels::cuda::Bf16* x, std::uint32_t rows,
                  const float* output_norm, float output_scale = 1);
  // The same with what stands in branch_.
  void add_branch_rows(std::uint32_t rows, const float* output_norm, float output_scale);
  void multiply(const GpuProjection& by, const kernels::cuda::Bf16* activations, std::uint32_t rows,
                kernels::cuda::Epilogue epilogue, float* out, std::size_t stride);
  kernels::cuda::PagedKv pages_of(std::uint32_t layer) const;
  kv::memory::LayerLocation location_of(std::uint32_t layer) const {
    return group_plan_.locations[config_.kv_layer_of(layer)];
  }

  const Config& config_;
  GpuWeights weights_;
  device::Stream stream_;
  GpuDecoderOptions options_;
  kv::memory::CacheGroupPlan group_plan_;
  std::byte* pages_ = nullptr;
  GpuStep step_;
  LruMap<GpuStepShape, device::Graph> graphs_{kGraphsMax};
  std::uint32_t steps_without_graphs_ = 0;
  std::uint64_t graphs_made_ = 0;

  device::Buffer residual_;    // [rows_max, width] fp32
  device::Buffer branch_;      // the same: what a branch adds, where it is not added at once
  device::Buffer normed_;      // activations of width
  device::Buffer qkv_;         // [rows_max, (heads + 2 kv_heads) * head_dim] fp32
  device::Buffer query_;       // [rows_max, heads, head_dim] of bf16 keys, else fp16
  device::Buffer sink_query_;  // the same for sinks (BatchSequence)
  device::Buffer mixed_;       // activations of heads * head_dim
  // Activations of models whose router and experts have norms of their own.
  device::Buffer router_normed_;
  device::Buffer expert_normed_;
  GpuFeedForward feed_forward_;
  std::optional<GpuLatentAttention> latent_attention_;  // only models with latents have it
  device::Buffer logits_;
  device::Buffer sampled_tokens_;
  device::Buffer partials_;
  std::vector<GpuRope> ropes_;        // those of the configuration
  device::Buffer query_factors_;      // [context + rows_max], or none
  device::PinnedBuffer far_rows_[2];  // rotations and factors of rows beyond the context
  std::uint32_t far_turn_ = 0;
};

}  // namespace pagoda::model
