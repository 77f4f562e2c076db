// Tokens and a KV view in, logits out: the llama forward pass.
//
// forward() writes the keys and values of the batch's rows into their pages and computes logits
// for the rows asked for. A row's logits are a function of the tokens up to it and the weights:
// not of the batch, the chunking, the thread count or which pages hold its past.
//
// Thread rule: one forward() at a time; it uses the pool given at construction.
#pragma once

#include <cstddef>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "kv/memory/page_buffer.h"
#include "kv/memory/slices.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/rope.h"
#include "model/weights.h"

namespace pagoda::model {

struct DecoderOptions {
  std::uint32_t rows_max = 512;  // of one forward pass: sizes the activations
  kv::memory::Element kv_element = kv::memory::Element::kF16;
  std::uint32_t block_tokens = 16;
};

class Decoder {
 public:
  // Config and weights must outlive the decoder, as must the pool and the kernel set.
  Decoder(const Config& config, const Weights& weights, const kernels::KernelSet& kernels,
          ThreadPool& pool, const DecoderOptions& options);

  const Config& config() const { return config_; }
  const kernels::KernelSet& kernel_set() const { return kernels_; }
  std::uint32_t rows_max() const { return options_.rows_max; }
  // How pages must be laid out and which slice holds which layer.
  const kv::memory::PageLayout& page_layout() const { return page_layout_; }
  const kv::memory::SlicePlan& slice_plan() const { return slice_plan_; }

  // out: [batch.logit_rows.size(), vocabulary]
  void forward(const Batch& batch, const kv::memory::PageBuffer& pages, float* out);
  // The logits of any rows of the last forward(): [rows.size(), vocabulary]. For those who want
  // more rows than they have memory for at once.
  void logits(std::span<const std::uint32_t> rows, float* out);

 private:
  // Where a batch row stands.
  struct RowPlace {
    const SequenceRows* sequence;
    std::uint64_t position;
  };
  // One split of one row's keys for one KV head: what a thread attends to at a time.
  struct SplitItem {
    std::uint32_t row;
    std::uint32_t kv_head;
    std::uint64_t split;
  };

  void place_rows(const Batch& batch);
  void embed(const Batch& batch);
  void attention_block(std::uint32_t layer, const kv::memory::PageBuffer& pages);
  void feed_forward_block(const LayerWeights& layer);

  void normalise(const std::vector<float>& weight);
  void project(const Projection& projection, const float* x, std::size_t rows, float* y,
               bool accumulate);
  void rotate_and_store(std::uint32_t layer, const kv::memory::LayerView& view);
  void attend(std::uint32_t layer, const kv::memory::LayerView& view);
  void attend_by_row(const kernels::Attention& job);
  void attend_by_split(const kernels::Attention& job);
  kv::memory::SequenceView sequence_view(std::size_t row, std::uint32_t layer,
                                         const kv::memory::LayerView& view) const;
  float* scratch(std::size_t thread) { return scratch_.data() + thread * scratch_stride_; }

  const Config& config_;
  const Weights& weights_;
  const kernels::KernelSet& kernels_;
  ThreadPool& pool_;
  DecoderOptions options_;
  kv::memory::SlicePlan slice_plan_;
  kv::memory::PageLayout page_layout_;
  RopeTable rope_;

  // Activations, [rows_max, …] each; taken once.
  std::vector<float> residual_;  // [width]
  std::vector<float> normed_;    // [width]
  std::vector<float> query_;     // [heads * key_dim]
  std::vector<float> key_;       // [kv_heads * key_dim]
  std::vector<float> value_;     // [kv_heads * value_dim]
  std::vector<float> attended_;  // [heads * value_dim]
  std::vector<float> gate_;      // [hidden_width]
  std::vector<float> up_;        // [hidden_width]
  std::vector<float> cosines_;   // [rope pairs]
  std::vector<float> sines_;     // [rope pairs]
  std::vector<RowPlace> places_;
  std::vector<kernels::AttentionRow> attention_rows_;
  std::vector<SplitItem> split_items_;
  std::vector<float> partials_;  // [split items], grows with the longest context seen
  std::vector<float> scratch_;   // [threads]
  std::size_t scratch_stride_;
};

}  // namespace pagoda::model
