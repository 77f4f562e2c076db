#include "model/decoder.h"

#include <algorithm>

#include "base/assert.h"
#include "model/decoder_sizes.h"
#include "model/kv_groups.h"
#include "model/weights_share.h"

namespace pagoda::model {
namespace {

// A sink's score is its learned logit, and its weight 1.
std::vector<float> sink_partials(const std::vector<float>& logits, std::size_t value_dim) {
  std::vector<float> partials;
  for (const float logit : logits) {
    partials.insert(partials.end(), {logit, 1.0f});
    partials.insert(partials.end(), value_dim, 0.0f);
  }
  return partials;
}

Division division_of(const Config& config, const ranks::Communicator* communicator) {
  if (communicator == nullptr) return {config, 0, 1};
  return {config, communicator->rank(), communicator->ranks()};
}

}  // namespace

Decoder::Decoder(const Config& config, const Weights& weights, const kernels::KernelSet& kernels,
                 ThreadPool& pool, const DecoderOptions& options)
    : config_(config),
      kernels_(kernels),
      pool_(pool),
      options_(options),
      division_(division_of(config, options.communicator)),
      weights_(share_weights(weights, config, division_), kernels, pool, options.on_pack),
      matmuls_(kernels, pool, scratch_bytes(config, kernels)),
      exchange_(open_exchange(config, division_, kernels, options.communicator, matmuls_,
                              options.rows_max)),
      feed_forward_(config, division_, kernels, pool, matmuls_, exchange_ ? &*exchange_ : nullptr,
                    options.rows_max),
      group_plan_(division_.divide(
          plan_kv_groups(config, kernels, options.kv_cache_dtype, options.block_tokens))),
      ropes_(config, weights.rope_frequencies, options.rows_max),
      sink_queries_(config, kernels, weights.rope_frequencies, options.rows_max,
                    query_floats_max(config)),
      key_observer_(kernels, pool) {
  ASSERT(options.rows_max > 0 && options.block_tokens > 0, "empty batches and blocks do not exist");
  const std::size_t rows = options.rows_max;
  residual_.resize(rows, config.width);
  const auto widest = [&](auto width_of) {
    return rows * widest_of(config, [&](std::uint32_t layer) {
             return std::size_t{1} * width_of(division_.heads(layer));
           });
  };
  query_.resize(widest([](const HeadShare& one) { return one.heads * one.shape.key_dim; }));
  key_.resize(widest([](const HeadShare& one) { return one.shape.kv_heads * one.shape.key_dim; }));
  if (config.latent.rank > 0) {
    latent_attention_.emplace(config, division_.heads(0).heads, kernels, matmuls_, rows);
  } else {
    value_.resize(
        widest([](const HeadShare& one) { return one.shape.kv_heads * one.shape.value_dim; }));
  }
  if (config.branch_norms != BranchNorms::kInput || config.residual_scale != 1 ||
      config.experts.router.experts > 0) {
    branch_.resize(rows, config.width);
  }
  if (config.has_sinks) {
    for (const LayerWeights& layer : weights_->layers) {
      sinks_.push_back(sink_partials(layer.sinks, config.value_dim));
    }
  }
  attended_.resize(widest([](const HeadShare& one) { return one.heads * one.shape.value_dim; }));
  normed_.resize(activation_bytes(config.width));
  mixed_.resize(activation_bytes(
      widest_of(config, [&](std::uint32_t layer) { return config.mixed_width(layer); })));
  if (config.experts.has_own_norms) {
    router_normed_.resize(activation_bytes(config.width));
    expert_normed_.resize(activation_bytes(config.width));
  }
  if (config.normalises_values) {
    ones_.assign(widest([](const HeadShare& one) { return one.shape.value_dim; }) / rows, 1.0f);
  }
  batch_tokens_.reserve(rows);
  nonfinite_rows_.reserve(rows);
  attention_tiles_.reserve(rows);
}

std::size_t Decoder::workspace_bytes() const {
  const std::size_t heads = query_.size() + key_.size() + value_.size() + attended_.size();
  const std::size_t packed =
      normed_.size() + mixed_.size() + router_normed_.size() + expert_normed_.size();
  return residual_.bytes() + branch_.bytes() + heads * sizeof(float) + packed +
         feed_forward_.workspace_bytes() +
         (latent_attention_ ? latent_attention_->workspace_bytes() : 0);
}

void Decoder::forward(const Batch& batch, const kv::memory::PageBuffer& pages, float* out) {
  place_rows(batch);
  embed(batch);
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    attention_block(layer, pages);
    feed_forward_block(layer);
    scale_residual(weights_->layers[layer].output_scale);
  }
  if (exchange_) exchange_->merge_flags(nonfinite_rows_);
  if (!batch.logit_rows.empty()) logits(batch.logit_rows, out);
}

void Decoder::place_rows(const Batch& batch) {
  ASSERT(batch.tokens.size() <= options_.rows_max, "the batch has more rows than rows_max");
  batch_tokens_.clear();
  sink_queries_.clear();
  for (const SequenceRows& sequence : batch.sequences) {
    ASSERT(sequence.tables.size() == group_plan_.groups.size(), "one block table per group");
    for (std::uint32_t row = 0; row < sequence.rows; ++row) {
      batch_tokens_.push_back({&sequence, sequence.first_position + row});
      sink_queries_.add(batch_tokens_.back().position, sequence.policy);
    }
  }
  ASSERT(batch_tokens_.size() == batch.tokens.size(), "every row belongs to one sequence");
  nonfinite_rows_.assign(batch_tokens_.size(), 0);
  ropes_.place(pool_, batch_tokens_.size(),
               [&](std::size_t row) { return std::optional(batch_tokens_[row].position); });
  sink_queries_.place(pool_);
}

void Decoder::embed(const Batch& batch) {
  for (std::size_t row = 0; row < batch.tokens.size(); ++row) {
    ASSERT(batch.tokens[row].value() < config_.vocabulary, "token ids are checked at the door");
    float* const values = residual_.row(row);
    kernels_.unpack_row(weights_->embedding, batch.tokens[row].value(), values);
    if (config_.embedding_scale == 1) continue;
    for (std::size_t i = 0; i < config_.width; ++i) values[i] *= config_.embedding_scale;
  }
}

void Decoder::feed_forward_block(std::uint32_t layer) {
  const LayerWeights& weights = weights_->layers[layer];
  const std::size_t rows = batch_tokens_.size();
  if (config_.has_experts(layer)) {
    normalise(weights.feed_forward_norm, normed_);
    FeedForward::Inputs inputs = {normed_.data(), normed_.data(), normed_.data()};
    if (config_.experts.has_own_norms) {
      normalise(weights.experts.router_norm, router_normed_);
      normalise(weights.experts.input_norm, expert_normed_);
      inputs = {router_normed_.data(), expert_normed_.data(), normed_.data()};
    }
    feed_forward_.mix_experts(layer, weights, inputs, rows, branch_);
    return add_branch_rows(weights.feed_forward_output_norm);
  }
  if (config_.hidden_width == 0) return;  // a model of attention alone
  normalise(weights.feed_forward_norm, normed_);
  add_branch(weights.feed_forward.down,
             feed_forward_.hidden(layer, weights.feed_forward, normed_.data(), rows),
             weights.feed_forward_output_norm);
}

// Adds x times the projection, normed and scaled where the model does that, to the residual stream.
void Decoder::add_branch(const Projection& projection, const std::byte* x,
                         const std::vector<float>& output_norm) {
  const std::size_t rows = batch_tokens_.size();
  const bool at_once = output_norm.empty() && config_.residual_scale == 1;
  FloatRows& to = at_once ? residual_ : branch_;
  if (exchange_) {
    exchange_->project(projection, x, rows, division_.width(), at_once, to);
  } else {
    const Product product = {&projection, x, rows, to.row(0), to.stride(), at_once};
    matmuls_.run({&product, 1});
  }
  if (!at_once) add_branch_rows(output_norm);
}

// Adds the rows of branch_, normed and scaled where the model does that, to the residual stream.
void Decoder::add_branch_rows(const std::vector<float>& output_norm) {
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      float* const added = branch_.row(row);
      float* const sum = residual_.row(row);
      if (!output_norm.empty()) {
        kernels_.rms_norm(added, output_norm.data(), config_.norm_epsilon, config_.width, added);
      }
      for (std::size_t i = 0; i < config_.width; ++i) sum[i] += added[i] * config_.residual_scale;
    }
  });
}

void Decoder::logits(std::span<const std::uint32_t> rows, float* out) {
  ASSERT(rows.size() <= options_.rows_max, "no more rows than were computed");
  matmuls_.for_rows(rows.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      ASSERT(rows[i] < batch_tokens_.size(), "logit rows are rows of the batch");
      normalise_row(weights_->output_norm, rows[i], normed_.data(), i, range.thread);
    }
  });
  const Projection head = {.weight = weights_->output, .bias = {}};
  if (exchange_) {
    const Cut& cut = division_.vocabulary();
    exchange_->project_to_first(head, normed_.data(), rows.size(), cut, out);
  } else {
    const Product product = {&head, normed_.data(), rows.size(), out, head.weight.rows};
    matmuls_.run({&product, 1});
  }
  if (division_.rank() == 0) finish_logits(std::span(out, rows.size() * config_.vocabulary));
}

void Decoder::hidden(std::span<const std::uint32_t> rows, float* out) {
  matmuls_.for_rows(rows.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      ASSERT(rows[i] < batch_tokens_.size(), "hidden rows are rows of the batch");
      kernels_.rms_norm(residual_.row(rows[i]), weights_->output_norm.data(), config_.norm_epsilon,
                        config_.width, out + i * config_.width);
    }
  });
}

void Decoder::finish_logits(std::span<float> logits) {
  if (config_.logit_scale == 1 && config_.logit_cap == 0) return;
  constexpr std::size_t kTogether = 4096;
  pool_.run((logits.size() + kTogether - 1) / kTogether, [&](WorkRange range) {
    const std::size_t begin = range.begin * kTogether;
    const std::size_t end = std::min(range.end * kTogether, logits.size());
    for (float& logit : logits.subspan(begin, end - begin)) logit *= config_.logit_scale;
    if (config_.logit_cap > 0) {
      kernels_.soft_cap(logits.data() + begin, end - begin, 1.0f, config_.logit_cap);
    }
  });
}

// Normalises every row of the residual stream; without a weight it goes there as it is.
void Decoder::normalise(const std::vector<float>& weight, LargeArray<std::byte>& to) {
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      normalise_row(weight, row, to.data(), row, range.thread);
    }
  });
}

void Decoder::normalise_row(const std::vector<float>& weight, std::size_t row, std::byte* to,
                            std::size_t to_row, std::size_t thread) {
  if (weight.empty()) {
    return kernels_.pack_activations(residual_.row(row), config_.width, to, to_row);
  }
  auto* const floats = reinterpret_cast<float*>(matmuls_.scratch(thread));
  kernels_.rms_norm(residual_.row(row), weight.data(), config_.norm_epsilon, config_.width, floats);
  kernels_.pack_activations(floats, config_.width, to, to_row);
}

void Decoder::scale_residual(float scale) {
  if (scale == 1) return;
  matmuls_.for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      float* const values = residual_.row(row);
      for (std::size_t i = 0; i < config_.width; ++i) values[i] *= scale;
    }
  });
}

}  // namespace pagoda::model
