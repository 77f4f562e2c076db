#include "model/decoder.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::model {
namespace {

std::size_t scratch_floats(const Config& config) {
  const std::size_t columns = std::max<std::size_t>(
      {config.width, config.hidden_width, std::size_t{config.heads} * config.value_dim});
  const std::size_t partial = kernels::partial_floats(config.group(), config.value_dim);
  const std::size_t attention =
      kernels::attention_scratch_floats(config.key_dim, config.value_dim) + 2 * partial;
  constexpr std::size_t kCacheLine = 16;  // floats: threads never share a line
  return std::max(kernels::matmul_scratch_floats(columns), attention) + kCacheLine;
}

// All layers have rows of one shape and differ in reach alone, so all slices have one layout.
kv::memory::SlicePlan slices_of(const Config& config, const kernels::KernelSet& kernels,
                                const DecoderOptions& options) {
  const kv::memory::PageLayout one_layer = {.element = options.kv_element,
                                            .block_tokens = options.block_tokens,
                                            .layers = 1,
                                            .kv_heads = config.kv_heads,
                                            .key_dim = config.key_dim,
                                            .value_dim = config.value_dim,
                                            .value_order = kernels.value_order};
  std::vector<kv::memory::LayerKind> layers;
  for (const kv::memory::LayerReach reach : config.reach) layers.push_back({reach, one_layer});
  return kv::memory::plan_slices(layers);
}

}  // namespace

Decoder::Decoder(const Config& config, const Weights& weights, const kernels::KernelSet& kernels,
                 ThreadPool& pool, const DecoderOptions& options)
    : config_(config),
      weights_(weights),
      kernels_(kernels),
      pool_(pool),
      options_(options),
      slice_plan_(slices_of(config, kernels, options)),
      page_layout_(slice_plan_.layouts.front()),
      rope_(config.rope, weights.rope_frequencies),
      scratch_stride_(scratch_floats(config)) {
  ASSERT(options.rows_max > 0 && options.block_tokens > 0, "empty batches and blocks do not exist");
  const std::size_t rows = options.rows_max;
  residual_.resize(rows * config.width);
  normed_.resize(rows * config.width);
  query_.resize(rows * config.heads * config.key_dim);
  key_.resize(rows * config.kv_heads * config.key_dim);
  value_.resize(rows * config.kv_heads * config.value_dim);
  attended_.resize(rows * config.heads * config.value_dim);
  gate_.resize(rows * config.hidden_width);
  up_.resize(rows * config.hidden_width);
  cosines_.resize(rows * rope_.pairs());
  sines_.resize(rows * rope_.pairs());
  places_.reserve(rows);
  attention_rows_.reserve(rows);
  scratch_.resize(pool.threads() * scratch_stride_);
}

void Decoder::forward(const Batch& batch, const kv::memory::PageBuffer& pages, float* out) {
  place_rows(batch);
  embed(batch);
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    attention_block(layer, pages);
    feed_forward_block(weights_.layers[layer]);
  }
  if (!batch.logit_rows.empty()) logits(batch.logit_rows, out);
}

void Decoder::place_rows(const Batch& batch) {
  ASSERT(batch.tokens.size() <= options_.rows_max, "the batch has more rows than rows_max");
  places_.clear();
  for (const SequenceRows& sequence : batch.sequences) {
    ASSERT(sequence.tables.size() == slice_plan_.slices.size(), "one block table per slice");
    for (std::uint32_t row = 0; row < sequence.rows; ++row) {
      places_.push_back({&sequence, sequence.first_position + row});
    }
  }
  ASSERT(places_.size() == batch.tokens.size(), "every row belongs to one sequence");
  pool_.run(places_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      rope_.fill(places_[row].position, cosines_.data() + row * rope_.pairs(),
                 sines_.data() + row * rope_.pairs());
    }
  });
}

void Decoder::embed(const Batch& batch) {
  for (std::size_t row = 0; row < batch.tokens.size(); ++row) {
    ASSERT(batch.tokens[row].value() < config_.vocabulary, "token ids are checked at the door");
    kernels_.unpack_row(weights_.embedding, batch.tokens[row].value(),
                        residual_.data() + row * config_.width);
  }
}

void Decoder::feed_forward_block(const LayerWeights& layer) {
  const std::size_t rows = places_.size();
  normalise(layer.feed_forward_norm);
  project(layer.gate, normed_.data(), rows, gate_.data(), false);
  project(layer.up, normed_.data(), rows, up_.data(), false);
  pool_.run(rows, [&](WorkRange range) {
    const std::size_t begin = range.begin * config_.hidden_width;
    kernels_.swiglu(gate_.data() + begin, up_.data() + begin,
                    (range.end - range.begin) * config_.hidden_width);
  });
  project(layer.down, gate_.data(), rows, residual_.data(), true);
}

void Decoder::logits(std::span<const std::uint32_t> rows, float* out) {
  ASSERT(rows.size() <= options_.rows_max, "no more rows than were computed");
  pool_.run(rows.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      ASSERT(rows[i] < places_.size(), "logit rows are rows of the batch");
      kernels_.rms_norm(residual_.data() + rows[i] * config_.width, weights_.output_norm.data(),
                        config_.norm_epsilon, config_.width, normed_.data() + i * config_.width);
    }
  });
  project({.weight = weights_.output, .bias = {}}, normed_.data(), rows.size(), out, false);
}

// Every row of the residual stream, into normed_.
void Decoder::normalise(const std::vector<float>& weight) {
  pool_.run(places_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      kernels_.rms_norm(residual_.data() + row * config_.width, weight.data(), config_.norm_epsilon,
                        config_.width, normed_.data() + row * config_.width);
    }
  });
}

void Decoder::project(const Projection& projection, const float* x, std::size_t rows, float* y,
                      bool accumulate) {
  const std::size_t outputs = projection.weight.rows;
  const kernels::Matmul job = {.x = x,
                               .x_stride = projection.weight.columns,
                               .rows = rows,
                               .weight = projection.weight,
                               .y = y,
                               .y_stride = outputs,
                               .accumulate = accumulate};
  const std::size_t panels = (outputs + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
  pool_.run(panels, [&](WorkRange range) {
    const std::size_t begin = range.begin * kernels::kMatmulPanel;
    const std::size_t end = std::min(range.end * kernels::kMatmulPanel, outputs);
    kernels_.matmul(job, begin, end, scratch(range.thread));
    if (projection.bias.empty()) return;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t n = begin; n < end; ++n) y[row * outputs + n] += projection.bias[n];
    }
  });
}

}  // namespace pagoda::model
