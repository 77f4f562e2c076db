#include "model/decoder.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::model {
namespace {

// Returns the scratch bytes of one thread: the kernels' own or a row of floats, and for attention
// also the partials of one tile, twice.
std::size_t scratch_bytes(const Config& config, const kernels::KernelSet& kernels) {
  const std::size_t mixed = std::size_t{config.heads} * config.value_dim;
  const std::size_t columns = std::max<std::size_t>({config.width, config.hidden_width, mixed});
  const std::size_t queries = std::max(kernels.attention_queries, config.group());
  const std::size_t partials = 2 * kernels::partial_floats(queries, config.value_dim);
  const std::size_t attention =
      kernels.attention_scratch(config.key_dim, config.value_dim) + partials * sizeof(float);
  const std::size_t bytes =
      std::max({kernels.matmul_scratch(columns), attention, columns * sizeof(float)});
  // Padded to whole cache lines with one between, so that threads never share a line.
  return (bytes + 2 * kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

// All layers have rows of one shape and differ in their windows alone, so that all groups have one
// layout.
kv::memory::CacheGroupPlan cache_groups_of(const Config& config, const kernels::KernelSet& kernels,
                                           const DecoderOptions& options) {
  // A column is a pair of dimensions.
  const bool paired = config.key_dim % 2 == 0;
  const kv::memory::PageLayout one_layer = {
      .element = options.kv_element.value_or(kernels.kv_element),
      .block_tokens = options.block_tokens,
      .layers = 1,
      .kv_heads = config.kv_heads,
      .key_dim = config.key_dim,
      .value_dim = config.value_dim,
      .value_order = kernels.value_order,
      .key_order = paired ? kernels.key_order : kv::memory::KeyOrder::kRows};
  std::vector<kv::memory::LayerKind> layers;
  for (const kv::memory::AttentionSpec spec : config.attention) layers.push_back({spec, one_layer});
  return kv::memory::plan_cache_groups(layers);
}

}  // namespace

Status check_kv_element(std::optional<kv::memory::Element> element) {
  if (element != kv::memory::Element::kE4M3) return ok_status();
  return Error{ErrorCode::kUnsupported,
               "`kv_cache_dtype`: fp8 is kept by GPUs alone; CPUs keep fp32, fp16 or bf16"};
}

Decoder::Decoder(const Config& config, const Weights& weights, const kernels::KernelSet& kernels,
                 ThreadPool& pool, const DecoderOptions& options)
    : config_(config),
      kernels_(kernels),
      pool_(pool),
      options_(options),
      weights_(weights, kernels, pool, options.on_pack),
      group_plan_(cache_groups_of(config, kernels, options)),
      page_layout_(group_plan_.layouts.front()),
      scratch_stride_(scratch_bytes(config, kernels)) {
  ASSERT(options.rows_max > 0 && options.block_tokens > 0, "empty batches and blocks do not exist");
  const std::size_t rows = options.rows_max;
  residual_.resize(rows, config.width);
  query_.resize(rows * config.heads * config.key_dim);
  key_.resize(rows * config.kv_heads * config.key_dim);
  value_.resize(rows * config.kv_heads * config.value_dim);
  gate_.resize(rows, config.hidden_width);
  up_.resize(rows, config.hidden_width);
  // The file's divisors are those of the first rotation.
  for (const RopeConfig& rope : config.ropes) {
    BatchRope& made = ropes_.emplace_back(
        BatchRope{RopeTable(rope, ropes_.empty() ? std::span<const float>(weights.rope_frequencies)
                                                 : std::span<const float>()),
                  {},
                  {}});
    made.cosines.resize(rows * made.table.pairs());
    made.sines.resize(rows * made.table.pairs());
  }
  if (config.branch_norms != BranchNorms::kInput || config.residual_scale != 1) {
    branch_.resize(rows, config.width);
  }
  attended_.resize(rows * config.heads * config.value_dim);
  normed_.resize(activation_bytes(config.width));
  mixed_.resize(activation_bytes(std::size_t{config.heads} * config.value_dim));
  hidden_.resize(activation_bytes(config.hidden_width));
  batch_tokens_.reserve(rows);
  nonfinite_rows_.reserve(rows);
  attention_tiles_.reserve(rows);
  scratch_.resize(pool.threads() * scratch_stride_);
}

void Decoder::forward(const Batch& batch, const kv::memory::PageBuffer& pages, float* out) {
  place_rows(batch);
  embed(batch);
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    attention_block(layer, pages);
    feed_forward_block(weights_->layers[layer]);
  }
  if (!batch.logit_rows.empty()) logits(batch.logit_rows, out);
}

void Decoder::place_rows(const Batch& batch) {
  ASSERT(batch.tokens.size() <= options_.rows_max, "the batch has more rows than rows_max");
  batch_tokens_.clear();
  for (const SequenceRows& sequence : batch.sequences) {
    ASSERT(sequence.tables.size() == group_plan_.groups.size(), "one block table per group");
    for (std::uint32_t row = 0; row < sequence.rows; ++row) {
      batch_tokens_.push_back({&sequence, sequence.first_position + row});
    }
  }
  ASSERT(batch_tokens_.size() == batch.tokens.size(), "every row belongs to one sequence");
  nonfinite_rows_.assign(batch_tokens_.size(), 0);
  pool_.run(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      for (BatchRope& rope : ropes_) {
        const std::size_t at = row * rope.table.pairs();
        rope.table.fill(batch_tokens_[row].position, rope.cosines.data() + at,
                        rope.sines.data() + at);
      }
    }
  });
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

void Decoder::feed_forward_block(const LayerWeights& layer) {
  if (config_.hidden_width == 0) return;  // a model of attention alone
  normalise(layer.feed_forward_norm);
  gate_and_up(layer);
  add_branch(layer.down, hidden_.data(), layer.feed_forward_output_norm);
}

// Adds x times the projection, normed and scaled where the model does that, to the residual stream.
void Decoder::add_branch(const Projection& projection, const std::byte* x,
                         const std::vector<float>& output_norm) {
  const std::size_t rows = batch_tokens_.size();
  if (output_norm.empty() && config_.residual_scale == 1) {
    const Output output = to_rows(projection, residual_, true);
    return project({&output, 1}, x, rows);
  }
  const Output output = to_rows(projection, branch_, false);
  project({&output, 1}, x, rows);
  for_rows(rows, [&](WorkRange range) {
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

// A thread computes the same outputs of both projections and joins them; a row is packed as
// activations once it is complete.
void Decoder::gate_and_up(const LayerWeights& layer) {
  const std::size_t rows = batch_tokens_.size();
  const std::size_t width = config_.hidden_width;
  const std::size_t panels = (width + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
  // With many rows, each thread computes few outputs at a time, which stay in the CPU cache until
  // they are used.
  const std::size_t panels_together = rows > 16 ? 2 : panels;
  const auto join = config_.gate == GateKind::kSwiGlu ? kernels_.swiglu : kernels_.geglu;
  const auto compute = [&](WorkRange part) {
    project_range(to_rows(layer.gate, gate_, false), normed_.data(), rows, part);
    project_range(to_rows(layer.up, up_, false), normed_.data(), rows, part);
    const std::size_t begin = part.begin * kernels::kMatmulPanel;
    const std::size_t count = std::min(part.end * kernels::kMatmulPanel, width) - begin;
    for (std::size_t row = 0; row < rows; ++row) {
      join(gate_.row(row) + begin, up_.row(row) + begin, count);
    }
  };
  pool_.run(panels, [&](WorkRange range) {
    for (std::size_t begin = range.begin; begin < range.end; begin += panels_together) {
      compute({begin, std::min(begin + panels_together, range.end), range.thread});
    }
  });
  for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      kernels_.pack_activations(gate_.row(row), width, hidden_.data(), row);
    }
  });
}

void Decoder::logits(std::span<const std::uint32_t> rows, float* out) {
  ASSERT(rows.size() <= options_.rows_max, "no more rows than were computed");
  for_rows(rows.size(), [&](WorkRange range) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      ASSERT(rows[i] < batch_tokens_.size(), "logit rows are rows of the batch");
      normalise_row(weights_->output_norm, rows[i], i, range.thread);
    }
  });
  const Projection head = {.weight = weights_->output, .bias = {}};
  const Output output = {&head, out, head.weight.rows, false};
  project({&output, 1}, normed_.data(), rows.size());
  if (config_.logit_scale == 1) return;
  for_rows(rows.size(), [&](WorkRange range) {
    for (float& logit :
         std::span(out + range.begin * head.weight.rows, out + range.end * head.weight.rows)) {
      logit *= config_.logit_scale;
    }
  });
}

// Normalises every row of the residual stream into normed_; without a weight it goes there as it
// is.
void Decoder::normalise(const std::vector<float>& weight) {
  for_rows(batch_tokens_.size(), [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      normalise_row(weight, row, row, range.thread);
    }
  });
}

void Decoder::normalise_row(const std::vector<float>& weight, std::size_t row, std::size_t to,
                            std::size_t thread) {
  if (weight.empty()) {
    return kernels_.pack_activations(residual_.row(row), config_.width, normed_.data(), to);
  }
  auto* const floats = reinterpret_cast<float*>(scratch(thread));
  kernels_.rms_norm(residual_.row(row), weight.data(), config_.norm_epsilon, config_.width, floats);
  kernels_.pack_activations(floats, config_.width, normed_.data(), to);
}

// Computes several projections of the same rows: their panels are divided over threads as if they
// were one matrix.
void Decoder::project(std::span<const Output> outputs, const std::byte* x, std::size_t rows) {
  const auto panels_of = [](const Output& output) {
    return (output.projection->weight.rows + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
  };
  std::size_t panels = 0;
  for (const Output& output : outputs) panels += panels_of(output);
  pool_.run(panels, [&](WorkRange range) {
    std::size_t first = 0;
    for (const Output& output : outputs) {
      const std::size_t last = first + panels_of(output);
      const std::size_t begin = std::max(range.begin, first);
      const std::size_t end = std::min(range.end, last);
      if (begin < end) project_range(output, x, rows, {begin - first, end - first, range.thread});
      first = last;
    }
  });
}

void Decoder::project_range(const Output& output, const std::byte* x, std::size_t rows,
                            WorkRange panels) {
  const Projection& projection = *output.projection;
  const std::size_t outputs = projection.weight.rows;
  const std::size_t begin = panels.begin * kernels::kMatmulPanel;
  const std::size_t end = std::min(panels.end * kernels::kMatmulPanel, outputs);
  kernels_.matmul({.x = x,
                   .rows = rows,
                   .weight = projection.weight,
                   .y = output.y,
                   .y_stride = output.stride,
                   .accumulate = output.accumulate},
                  begin, end, scratch(panels.thread));
  if (projection.bias.empty()) return;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t n = begin; n < end; ++n)
      output.y[row * output.stride + n] += projection.bias[n];
  }
}

}  // namespace pagoda::model
