// The forward pass on a CPU: tokens and a KV view in, logits out.
//
// forward() writes the keys and values of the batch's rows into their pages and computes logits for
// the requested rows. A row's logits are a function of the tokens up to it and the weights, not of
// the batch, the chunking, the thread count or which pages hold its past; nor is it one of how many
// ranks compute the model together (division.h): each of them has a decoder, and all are given the
// same batches. Pages hold the heads of their rank.
//
// Thread rule: one forward() at a time; it uses the pool given at construction.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/ops.h"
#include "kv/memory/cache_groups.h"
#include "kv/memory/page_buffer.h"
#include "model/attention_tile.h"
#include "model/batch.h"
#include "model/batch_ropes.h"
#include "model/config.h"
#include "model/division.h"
#include "model/feed_forward.h"
#include "model/float_rows.h"
#include "model/key_observer.h"
#include "model/kv_groups.h"
#include "model/latent_attention.h"
#include "model/matmul_runner.h"
#include "model/packed_weights.h"
#include "model/rank_exchange.h"
#include "model/sink_queries.h"
#include "model/weights.h"
#include "ranks/communicator.h"

namespace pagoda::model {

struct DecoderOptions {
  std::uint32_t rows_max = 512;  // rows of one forward pass, which size the activations
  KvCacheDtype kv_cache_dtype = {};
  std::uint32_t block_tokens = 16;
  PackProgress on_pack = {};
  ranks::Communicator* communicator = nullptr;  // of several ranks; nullptr: this decoder does all
};

class Decoder {
 public:
  // Packs the rank's share of the weights for the kernel set. Config and the file behind the
  // weights must outlive the decoder, as must the pool, the kernel set and the communicator.
  Decoder(const Config& config, const Weights& weights, const kernels::KernelSet& kernels,
          ThreadPool& pool, const DecoderOptions& options);

  const Config& config() const { return config_; }
  const kernels::KernelSet& kernel_set() const { return kernels_; }
  std::uint32_t rows_max() const { return options_.rows_max; }
  // The layout of pages of the first group: those of others have the same size, element and tokens.
  const kv::memory::PageLayout& page_layout() const { return group_plan_.layouts.front(); }
  // The layout of every group, and the group of each layer: of pages of this rank.
  const kv::memory::CacheGroupPlan& group_plan() const { return group_plan_; }

  // Returns the bytes of weights that were packed.
  std::size_t packed_bytes() const { return weights_.bytes(); }
  // Returns the bytes of activations, which have room for rows_max() rows. Partial results of
  // attention are not among them: they grow with the contexts that were seen.
  std::size_t workspace_bytes() const;
  // Returns the bytes that ranks have sent to each other, all together.
  std::uint64_t bytes_exchanged() const { return exchange_ ? exchange_->bytes_sent() : 0; }

  // out: [batch.logit_rows.size(), vocabulary], on rank 0; not touched on others.
  void forward(const Batch& batch, const kv::memory::PageBuffer& pages, float* out);
  // Computes the logits of any rows of the last forward(): [rows.size(), vocabulary]. Callers use
  // this for more rows than they have memory for at once.
  void logits(std::span<const std::uint32_t> rows, float* out);
  // Copies the hidden states of any rows of the last forward(), after the last norm: what logits
  // are computed from. [rows.size(), width]
  void hidden(std::span<const std::uint32_t> rows, float* out);
  // For each row of the last forward(): 1 where a query, key or value was not finite
  // (kernels/ops.h, first_infinite). The logits of such rows, and of rows that see them, are not
  // numbers. Of several ranks the first knows them all.
  std::span<const std::uint8_t> nonfinite_rows() const { return nonfinite_rows_; }

 private:
  LayerAttention layer_attention(std::uint32_t layer, const kv::memory::PageBuffer& pages) const;
  void place_rows(const Batch& batch);
  void embed(const Batch& batch);
  void attention_block(std::uint32_t layer, const kv::memory::PageBuffer& pages);
  void feed_forward_block(std::uint32_t layer);
  void add_branch(const Projection& projection, const std::byte* x,
                  const std::vector<float>& output_norm);
  void add_branch_rows(const std::vector<float>& output_norm);

  void scale_residual(float scale);
  void finish_logits(std::span<float> logits);
  void normalise(const std::vector<float>& weight, LargeArray<std::byte>& to);
  void normalise_row(const std::vector<float>& weight, std::size_t row, std::byte* to,
                     std::size_t to_row, std::size_t thread);
  void normalise_heads(float* heads, std::size_t width, const std::vector<float>& weight) const;
  void project(std::uint32_t layer, const LayerAttention& attention);
  void norm_and_rotate(std::uint32_t layer, const LayerAttention& attention);
  void normalise_over_ranks(std::uint32_t layer);
  void check_queries(const LayerAttention& layer);
  void check_query(const LayerAttention& layer, std::size_t row, std::uint64_t position,
                   float* query);
  void store(const LayerAttention& layer);
  void attend(const LayerAttention& layer);
  std::uint32_t rows_together(const LayerAttention& layer) const;
  void list_tiles(const LayerAttention& layer);
  void attend_by_tile(const LayerAttention& layer);
  bool list_splits(const LayerAttention& layer);
  void attend_by_split(const LayerAttention& layer);
  void merge_tile(const LayerAttention& layer, std::span<const SplitItem> items);
  void finish_tile(const LayerAttention& layer, const AttentionTile& tile, std::uint32_t kv_head,
                   float* totals, std::byte* memory);
  void mix(std::uint32_t layer, const float* outputs, std::size_t stride);
  bool sees_gap(const LayerAttention& layer, std::size_t row) const {
    return layer.job.window == 0 && sink_queries_.sees_gap(row);
  }
  kv::memory::SequenceView sequence_view(std::size_t row, const LayerAttention& layer) const;
  std::uint64_t slot_of(std::size_t row, const LayerAttention& layer) const {
    return batch_tokens_[row].sequence->selected.slot(layer.kv_group, batch_tokens_[row].position);
  }
  std::size_t activation_bytes(std::size_t columns) const {
    return kernels::activation_bytes(kernels_.numerics, columns, options_.rows_max);
  }

  const Config& config_;
  const kernels::KernelSet& kernels_;
  ThreadPool& pool_;
  DecoderOptions options_;
  Division division_;
  PackedWeights weights_;
  MatmulRunner matmuls_;
  std::optional<RankExchange> exchange_;  // of several ranks
  FeedForward feed_forward_;
  std::optional<LatentAttention> latent_attention_;  // of models with latents
  kv::memory::CacheGroupPlan group_plan_;
  BatchRopes ropes_;
  SinkQueries sink_queries_;
  KeyObserver key_observer_;
  std::vector<std::vector<float>> sinks_;  // [layers][heads] partial results; empty: no sinks

  // Activations of this rank's heads, [rows_max, …] each, allocated once.
  FloatRows residual_;          // [width]
  LargeArray<float> query_;     // [heads * key_dim]
  LargeArray<float> key_;       // [kv_heads * key_dim]
  LargeArray<float> value_;     // [kv_heads * value_dim]; none with latents
  LargeArray<float> attended_;  // [heads * value_dim]
  FloatRows branch_;            // [width]: what a branch adds, where it is not added at once
  std::vector<TokenOfSequence> batch_tokens_;
  std::vector<std::uint8_t> nonfinite_rows_;
  // Packed activations, [rows_max] rows each.
  LargeArray<std::byte> normed_;  // rows of width
  LargeArray<std::byte> mixed_;   // rows of Config::mixed_width()
  // Activations of models whose router and experts have norms of their own.
  LargeArray<std::byte> router_normed_;
  LargeArray<std::byte> expert_normed_;
  std::vector<float> ones_;  // [value_dim]: norms of values have no weights; or empty
  std::vector<AttentionTile> attention_tiles_;
  std::vector<SplitItem> split_items_;
  LargeArray<float> partials_;  // partials of the split items; grows with the longest context seen
};

}  // namespace pagoda::model
