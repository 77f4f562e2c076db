#include "model/gpu_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "model/rope.h"

namespace pagoda::model {

namespace cuda = kernels::cuda;

namespace {

kv::memory::CacheGroupPlan cache_groups_of(const Config& config, const GpuDecoderOptions& options) {
  const kv::memory::PageLayout one_layer = {.element = options.kv_element,
                                            .block_tokens = options.block_tokens,
                                            .layers = 1,
                                            .kv_heads = config.kv_heads,
                                            .key_dim = config.key_dim,
                                            .value_dim = config.value_dim};
  std::vector<kv::memory::LayerKind> layers;
  for (const kv::memory::AttentionSpec spec : config.attention) layers.push_back({spec, one_layer});
  return kv::memory::plan_cache_groups(layers);
}

// The operations that the GPU lacks are refused by name.
Status check_operations(const Config& config) {
  const char* lacks = nullptr;
  if (config.branch_norms != BranchNorms::kInput) lacks = "norms of what a branch adds";
  if (config.qk_norm == QkNormSpan::kAllHeads) lacks = "norms that span all heads";
  if (config.gate != GateKind::kSwiGlu) lacks = "another gate than SwiGLU";
  if (config.experts.router.experts > 0) lacks = "experts";
  if (config.latent.rank > 0) lacks = "latent attention";
  if (config.full_heads) lacks = "layers with other heads than others";
  if (config.has_sinks) lacks = "attention sinks";
  if (config.score_cap != 0 || config.logit_cap != 0) lacks = "soft caps of scores or logits";
  if (config.query_scale) lacks = "queries scaled by position";
  if (config.ropes.size() != 1 || !config.rope_of_layer.empty()) lacks = "rotations by layer";
  if (config.embedding_scale != 1 || config.residual_scale != 1 || config.logit_scale != 1) {
    lacks = "scales of embeddings, branches or logits";
  }
  if (lacks == nullptr) return ok_status();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("this model has {}, which the GPU does not run: use `device=cpu`", lacks)};
}

Status check_shape(const Config& config, const GpuDecoderOptions& options) {
  RETURN_IF_ERROR(check_operations(config));
  const std::uint32_t dim = config.key_dim;
  if ((dim != 64 && dim != 128 && dim != 256) || config.value_dim != dim) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the GPU runs heads of 64, 128 or 256 dimensions; this model's have {} "
                    "key and {} value dimensions: use `device=cpu`",
                    dim, config.value_dim)};
  }
  const std::uint32_t block = options.block_tokens;
  if (!std::has_single_bit(block) || block < 16 || block > 128) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`block_size`: is {}, but the GPU takes 16, 32, 64 or 128", block)};
  }
  if (options.kv_element == kv::memory::Element::kF32) {
    return Error{ErrorCode::kUnsupported,
                 "`kv_cache_dtype`: the GPU keeps keys and values as bf16, fp16 or fp8"};
  }
  return ok_status();
}

constexpr std::uint32_t kStepsWithoutGraphs = 256;

constexpr std::size_t kSamplingParamsWords =
    sizeof(cuda::GpuSamplingParams) / sizeof(std::uint32_t);

// Returns the rows that a decode step of `rows` rows is launched with: a few sizes, so that there
// are few graphs.
std::uint32_t bucket_of(std::uint32_t rows) {
  if (rows <= 8) return std::bit_ceil(rows);
  if (rows <= 256) return (rows + 7) / 8 * 8;
  return (rows + 31) / 32 * 32;
}

}  // namespace

GpuDecoder::GpuDecoder(const Config& config, GpuWeights weights, device::Stream stream,
                       const GpuDecoderOptions& options)
    : config_(config),
      weights_(std::move(weights)),
      stream_(std::move(stream)),
      options_(options),
      group_plan_(cache_groups_of(config, options)),
      page_layout_(group_plan_.layouts.front()) {
  // Wide tiles are copied to the tensor cores as they are, so that they need 2-byte elements.
  if (kv::memory::element_bytes(options.kv_element) != 2) limits_.wide_blocks = kNoWideTiles;
}

Result<std::unique_ptr<GpuDecoder>> GpuDecoder::create(const Config& config, GpuWeights weights,
                                                       std::span<const float> rope_divisors,
                                                       const GpuDecoderOptions& options) {
  RETURN_IF_ERROR(check_shape(config, options));
  RETURN_IF_ERROR(cuda::prepare_kernels());
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  std::unique_ptr<GpuDecoder> decoder(
      new GpuDecoder(config, std::move(weights), std::move(stream), options));
  RETURN_IF_ERROR(decoder->take_memory(rope_divisors));
  return decoder;
}

Status GpuDecoder::take_memory(std::span<const float> rope_divisors) {
  const std::size_t rows = bucket_of(options_.rows_max);
  const std::size_t dim = config_.key_dim;
  const std::size_t mixed = config_.heads * dim;
  const std::size_t qkv = mixed + 2 * config_.kv_heads * dim;
  const std::size_t logit_rows = bucket_of(options_.sequences_max);
  const auto take = [](device::Buffer& to, std::uint64_t bytes, const char* what) -> Status {
    ASSIGN_OR_RETURN(to, device::Buffer::allocate(bytes, what));
    return ok_status();
  };
  RETURN_IF_ERROR(take(residual_, rows * config_.width * 4, "the residual stream"));
  RETURN_IF_ERROR(take(
      normed_, 2 * cuda::activation_values(std::max(rows, logit_rows), config_.width), "norms"));
  RETURN_IF_ERROR(take(qkv_, rows * qkv * 4, "queries, keys and values"));
  RETURN_IF_ERROR(take(query_, rows * mixed * 2, "queries"));
  RETURN_IF_ERROR(take(mixed_, 2 * cuda::activation_values(rows, mixed), "attention"));
  RETURN_IF_ERROR(take(hidden_, 2 * cuda::activation_values(rows, config_.hidden_width), "gates"));
  RETURN_IF_ERROR(take(logits_, logit_rows * config_.vocabulary * 4, "logits"));
  RETURN_IF_ERROR(take(sampled_tokens_, logit_rows * 4, "sampled_tokens"));
  RETURN_IF_ERROR(
      take(partials_, limits_.partial_rows * cuda::partial_floats(dim) * 4, "partial attention"));

  layout_.sequences = rows * 4;
  layout_.logit_rows = layout_.sequences + std::size_t{options_.sequences_max} * 4;
  layout_.samples = layout_.logit_rows + logit_rows;
  layout_.nonfinite = layout_.samples + logit_rows * kSamplingParamsWords;
  layout_.items = layout_.nonfinite + options_.sequences_max;
  layout_.merges_max = limits_.merges;
  const auto tiles_max = [&](std::uint32_t tile_rows) {
    return query_tiles(static_cast<std::uint32_t>(rows), config_.group(), tile_rows) +
           std::size_t{options_.sequences_max};
  };
  layout_.items_max = std::max<std::size_t>(limits_.items, tiles_max(cuda::kQueryRows)) +
                      tiles_max(cuda::wide_rows(config_.key_dim));
  layout_.group_items = 3 + (layout_.merges_max + layout_.items_max) * 5;
  const std::size_t groups = group_plan_.groups.size();
  layout_.tables = layout_.items + groups * layout_.group_items;
  const std::uint64_t blocks =
      (options_.context_tokens + options_.block_tokens - 1) / options_.block_tokens;
  layout_.table_words = options_.sequences_max * blocks;
  layout_.words = layout_.tables + groups * layout_.table_words;
  RETURN_IF_ERROR(take(step_, layout_.words * 4, "step inputs"));
  for (device::PinnedBuffer& host : step_host_) {
    ASSIGN_OR_RETURN(host, device::PinnedBuffer::allocate(layout_.words * 4, "step inputs"));
  }
  plans_.resize(groups);
  for (AttentionPlan& plan : plans_) {
    plan.items.reserve(layout_.items_max);
    plan.merges.reserve(layout_.merges_max);
    plan.wide.reserve(tiles_max(cuda::wide_rows(config_.key_dim)));
  }
  sequences_.reserve(options_.sequences_max);
  return fill_rope(rope_divisors);
}

Status GpuDecoder::fill_rope(std::span<const float> divisors) {
  const RopeTable rope(config_.ropes.front(), divisors);
  const std::size_t values = options_.context_tokens * rope.pairs();
  std::vector<float> cosines(values);
  std::vector<float> sines(values);
  for (std::uint64_t position = 0; position < options_.context_tokens; ++position) {
    rope.fill(position, cosines.data() + position * rope.pairs(),
              sines.data() + position * rope.pairs());
  }
  const auto send = [&](device::Buffer& to, const std::vector<float>& from) -> Status {
    ASSIGN_OR_RETURN(to, device::Buffer::allocate(values * 4, "rotations"));
    return weights_.uploads().upload(stream_, std::as_bytes(std::span(from)), to.data(),
                                     "a rotary table");
  };
  RETURN_IF_ERROR(send(cosines_, cosines));
  return send(sines_, sines);
}

// Writes tokens, positions and tables of a step into its memory.
void GpuDecoder::write_rows(std::span<const GpuRows> sequences, std::uint32_t* words) {
  auto* const batch_tokens = reinterpret_cast<cuda::BatchToken*>(words + layout_.batch_tokens);
  sequences_.clear();
  table_words_used_ = 0;
  std::uint32_t row = 0;
  for (const GpuRows& sequence : sequences) {
    const auto index = static_cast<std::uint32_t>(sequences_.size());
    sequences_.push_back({row, sequence.rows, static_cast<std::uint32_t>(sequence.first_position),
                          table_words_used_});
    for (std::uint32_t i = 0; i < sequence.rows; ++i) {
      const bool known = i < sequence.tokens.size();
      batch_tokens[row++] = {known ? sequence.tokens[i].value() : sequence.last_token.value(),
                             known ? cuda::kNotSampled : sequence.sampled_index,
                             static_cast<std::uint32_t>(sequence.first_position) + i, index};
    }
    const std::uint64_t end = sequence.first_position + sequence.rows;
    const std::uint64_t blocks = (end + options_.block_tokens - 1) / options_.block_tokens;
    ASSERT(table_words_used_ + blocks <= layout_.table_words, "the context bounds every table");
    for (std::size_t s = 0; s < sequence.tables.size(); ++s) {
      std::memcpy(words + layout_.tables + s * layout_.table_words + table_words_used_,
                  sequence.tables[s], blocks * sizeof(std::uint32_t));
    }
    table_words_used_ += static_cast<std::uint32_t>(blocks);
  }
  std::fill_n(words + layout_.nonfinite, options_.sequences_max, 0);
  std::memcpy(words + layout_.sequences, sequences_.data(),
              sequences_.size() * sizeof(cuda::BatchSequence));
}

GpuDecoder::StepShape GpuDecoder::write_step(std::span<const GpuRows> sequences,
                                             std::span<const std::uint32_t> logit_rows,
                                             std::uint32_t* words) {
  write_rows(sequences, words);
  std::uint32_t rows = 0;
  for (const GpuRows& sequence : sequences) rows += sequence.rows;
  ASSERT(rows <= options_.rows_max, "the step has more rows than rows_max");
  StepShape shape;
  const bool decodes = rows == sequences.size();
  shape.rows = decodes ? bucket_of(rows) : rows;
  auto* const batch_tokens = reinterpret_cast<cuda::BatchToken*>(words + layout_.batch_tokens);
  for (std::uint32_t i = rows; i < shape.rows; ++i) {
    batch_tokens[i] = {0, cuda::kNotSampled, cuda::kNoPosition, 0};
  }
  shape.logit_rows = static_cast<std::uint32_t>(logit_rows.size());
  if (decodes) shape.logit_rows = bucket_of(std::max(1u, shape.logit_rows));
  std::uint32_t* const wanted = words + layout_.logit_rows;
  std::copy(logit_rows.begin(), logit_rows.end(), wanted);
  std::fill(wanted + logit_rows.size(), wanted + shape.logit_rows, 0);
  for (std::size_t s = 0; s < plans_.size(); ++s) {
    AttentionPlan& plan = plans_[s];
    plan.fill(sequences_,
              {.heads = config_.heads,
               .kv_heads = config_.kv_heads,
               .window = group_plan_.groups[s].window,
               .head_dim = config_.key_dim},
              limits_);
    ASSERT(plan.items.size() + plan.wide.size() <= layout_.items_max &&
               plan.merges.size() <= layout_.merges_max,
           "a plan keeps within its limits");
    std::uint32_t* const at = words + layout_.items + s * layout_.group_items;
    at[0] = static_cast<std::uint32_t>(plan.items.size());
    at[1] = static_cast<std::uint32_t>(plan.merges.size());
    at[2] = static_cast<std::uint32_t>(plan.wide.size());
    std::uint32_t* const items = at + 3 + layout_.merges_max * 5;
    std::memcpy(at + 3, plan.merges.data(), plan.merges.size() * sizeof(cuda::AttentionItem));
    std::memcpy(items, plan.items.data(), plan.items.size() * sizeof(cuda::AttentionItem));
    std::memcpy(items + plan.items.size() * 5, plan.wide.data(),
                plan.wide.size() * sizeof(cuda::AttentionItem));
    // Graphs are made for few shapes: launches are rounded up, and surplus blocks return at once.
    const auto rounded = [&](std::uint32_t count) {
      return decodes && count > 0 ? std::bit_ceil(count) : count;
    };
    shape.items.push_back(rounded(at[0]));
    shape.merges.push_back(rounded(at[1]));
    shape.wide.push_back(at[2]);
  }
  return shape;
}

Status GpuDecoder::send_step(const std::uint32_t* words, const StepShape& shape) {
  const auto send = [&](std::size_t begin, std::size_t count) {
    return stream_.copy_to_device(step_.data() + begin * 4,
                                  reinterpret_cast<const std::byte*>(words + begin), count * 4);
  };
  RETURN_IF_ERROR(send(0, std::size_t{shape.rows} * 4));
  RETURN_IF_ERROR(send(layout_.sequences, layout_.items - layout_.sequences));
  for (std::size_t s = 0; s < plans_.size(); ++s) {
    const std::size_t at = layout_.items + s * layout_.group_items;
    RETURN_IF_ERROR(send(at, 3 + plans_[s].merges.size() * 5));
    RETURN_IF_ERROR(send(at + 3 + layout_.merges_max * 5,
                         (plans_[s].items.size() + plans_[s].wide.size()) * 5));
    RETURN_IF_ERROR(send(layout_.tables + s * layout_.table_words, table_words_used_));
  }
  return ok_status();
}

// Returns how many samples are launched; surplus ones sample nothing.
std::uint32_t GpuDecoder::write_samples(std::span<const cuda::GpuSamplingParams> samples,
                                        bool decodes, std::uint32_t* words) {
  const auto count = static_cast<std::uint32_t>(samples.size());
  const std::uint32_t launched = decodes && count > 0 ? bucket_of(count) : count;
  auto* const at = reinterpret_cast<cuda::GpuSamplingParams*>(words + layout_.samples);
  std::copy(samples.begin(), samples.end(), at);
  std::fill(at + count, at + launched, cuda::GpuSamplingParams{.row = cuda::kNoRow});
  return launched;
}

Status GpuDecoder::forward(std::span<const GpuRows> sequences,
                           std::span<const std::uint32_t> logit_rows,
                           std::span<const cuda::GpuSamplingParams> samples) {
  ASSERT(logit_rows.size() <= logit_rows_max(), "more rows of logits than memory was taken for");
  ASSERT(samples.size() <= logit_rows_max(), "more samples than memory was taken for");
  ASSERT(pages_ != nullptr, "pages are set before the first step");
  auto* const words = step_host_[step_turn_ % 2].as<std::uint32_t>();
  ++step_turn_;
  StepShape shape = write_step(sequences, logit_rows, words);
  std::uint32_t rows = 0;
  for (const GpuRows& sequence : sequences) rows += sequence.rows;
  const bool decodes = rows == sequences.size();
  shape.samples = write_samples(samples, decodes, words);
  RETURN_IF_ERROR(send_step(words, shape));
  return options_.graphs && decodes ? launch_as_graph(shape) : launch_step(shape);
}

// After a graph could not be made, steps run without graphs for a while, because the kept graphs
// hold memory that may have been missing.
Status GpuDecoder::launch_as_graph(const StepShape& shape) {
  const device::Graph* graph = graphs_.find(shape);
  if (graph == nullptr && steps_without_graphs_ == 0) {
    Result<device::Graph> made = capture(shape);
    if (made.ok()) {
      graph = &graphs_.put(shape, std::move(made).value());
    } else {
      graphs_.clear();
      steps_without_graphs_ = kStepsWithoutGraphs;
    }
  }
  if (graph != nullptr) return stream_.launch(*graph);
  if (steps_without_graphs_ > 0) --steps_without_graphs_;
  return launch_step(shape);
}

Result<device::Graph> GpuDecoder::capture(const StepShape& shape) {
  RETURN_IF_ERROR(stream_.begin_capture());
  const Status launched = launch_step(shape);
  Result<device::Graph> captured = stream_.end_capture();
  RETURN_IF_ERROR(launched);
  return captured;
}

Status GpuDecoder::check_uploads() { return weights_.uploads().check(stream_); }

Status GpuDecoder::logits(std::span<const std::uint32_t> rows) {
  auto* const words = step_host_[step_turn_ % 2].as<std::uint32_t>();
  std::copy(rows.begin(), rows.end(), words + layout_.logit_rows);
  RETURN_IF_ERROR(stream_.copy_to_device(
      step_.data() + layout_.logit_rows * 4,
      reinterpret_cast<const std::byte*>(words + layout_.logit_rows), rows.size() * 4));
  launch_logits(static_cast<std::uint32_t>(rows.size()), 0);
  return device::last_launch_error();
}

Status GpuDecoder::launch_step(const StepShape& shape) {
  cuda::launch_embed(
      {.table = weights_.embedding(),
       .batch_tokens = reinterpret_cast<const cuda::BatchToken*>(step_at(layout_.batch_tokens)),
       .sampled_tokens = sampled_tokens(),
       .rows = shape.rows,
       .width = config_.width,
       .residual = residual_.as<float>()},
      stream_.handle());
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) launch_layer(layer, shape);
  if (shape.logit_rows > 0) launch_logits(shape.logit_rows, shape.samples);
  return device::last_launch_error();
}

void GpuDecoder::multiply(const GpuProjection& by, const device::Buffer& activations,
                          std::uint32_t rows, cuda::Epilogue epilogue, float* out,
                          std::size_t stride) {
  cuda::launch_gemm({.weight = by.weight,
                     .x = activations.as<cuda::Bf16>(),
                     .rows = rows,
                     .epilogue = epilogue,
                     .out = out + by.column,
                     .out_stride = stride,
                     .bias = by.bias,
                     .activations = hidden_.as<cuda::Bf16>()},
                    stream_.handle());
}

void GpuDecoder::launch_layer(std::uint32_t layer, const StepShape& shape) {
  const GpuLayer& weights = weights_.layers()[layer];
  const auto normalise = [&](const float* weight) {
    cuda::launch_rms_norm({.residual = residual_.as<float>(),
                           .weight = weight,
                           .rows = shape.rows,
                           .width = config_.width,
                           .epsilon = config_.norm_epsilon,
                           .activations = normed_.as<cuda::Bf16>()},
                          stream_.handle());
  };
  normalise(weights.attention_norm);
  const std::size_t qkv = std::size_t{config_.heads + 2 * config_.kv_heads} * config_.key_dim;
  for (const GpuProjection& part : weights.qkv) {
    multiply(part, normed_, shape.rows, cuda::Epilogue::kStore, qkv_.as<float>(), qkv);
  }
  if (weights.query_norm != nullptr) {
    cuda::launch_qk_norm({.qkv = qkv_.as<float>(),
                          .query_weight = weights.query_norm,
                          .key_weight = weights.key_norm,
                          .rows = shape.rows,
                          .heads = config_.heads,
                          .kv_heads = config_.kv_heads,
                          .head_dim = config_.key_dim,
                          .epsilon = config_.norm_epsilon},
                         stream_.handle());
  }
  launch_attention(layer, shape);
  multiply(weights.attention_output, mixed_, shape.rows, cuda::Epilogue::kAdd,
           residual_.as<float>(), config_.width);
  normalise(weights.feed_forward_norm);
  multiply(weights.gate_up, normed_, shape.rows, cuda::Epilogue::kSwiGlu, nullptr, 0);
  multiply(weights.down, hidden_, shape.rows, cuda::Epilogue::kAdd, residual_.as<float>(),
           config_.width);
}

void GpuDecoder::launch_attention(std::uint32_t layer, const StepShape& shape) {
  const kv::memory::LayerLocation place = group_plan_.locations[layer];
  const std::size_t items = layout_.items + place.group * layout_.group_items;
  const auto* const sequences =
      reinterpret_cast<const cuda::BatchSequence*>(step_at(layout_.sequences));
  const cuda::PagedKv pages = {
      .data = pages_,
      .layout = page_layout_,
      .layer = place.layer,
      .tables = step_at(layout_.tables + place.group * layout_.table_words)};
  cuda::launch_rope_and_store_kv(
      {.qkv = qkv_.as<float>(),
       .batch_tokens = reinterpret_cast<const cuda::BatchToken*>(step_at(layout_.batch_tokens)),
       .sequences = sequences,
       .pages = pages,
       .rows = shape.rows,
       .heads = config_.heads,
       .cosines = cosines_.as<float>(),
       .sines = sines_.as<float>(),
       .pairs = config_.ropes.front().dims / 2,
       .adjacent = config_.ropes.front().pairing == kernels::RopePairing::kAdjacent,
       .query = query_.as<std::uint16_t>(),
       .nonfinite = step_.as<std::uint32_t>() + layout_.nonfinite},
      stream_.handle());
  cuda::PagedAttention job = {.query = query_.as<std::uint16_t>(),
                              .sequences = sequences,
                              .pages = pages,
                              .heads = config_.heads,
                              .window = group_plan_.groups[place.group].window,
                              .scale = config_.score_scale(),
                              .items = reinterpret_cast<const cuda::AttentionItem*>(
                                  step_at(items + 3 + layout_.merges_max * 5)),
                              .item_count = step_at(items),
                              .items_max = shape.items[place.group],
                              .rows = shape.rows,
                              .partials = partials_.as<float>(),
                              .activations = mixed_.as<cuda::Bf16>()};
  // Never in a graph, because the item count before them is the launched one.
  if (shape.wide[place.group] > 0) {
    cuda::PagedAttention wide = job;
    wide.items += shape.items[place.group];
    wide.item_count = step_at(items + 2);
    wide.items_max = shape.wide[place.group];
    cuda::launch_paged_attention_wide(wide, stream_.handle());
  }
  if (shape.items[place.group] == 0) return;
  cuda::launch_paged_attention(job, stream_.handle());
  if (shape.merges[place.group] == 0) return;
  job.items = reinterpret_cast<const cuda::AttentionItem*>(step_at(items + 3));
  job.item_count = step_at(items + 1);
  job.items_max = shape.merges[place.group];
  cuda::launch_merge_splits(job, stream_.handle());
}

void GpuDecoder::launch_logits(std::uint32_t rows, std::uint32_t samples) {
  cuda::launch_rms_norm({.residual = residual_.as<float>(),
                         .weight = weights_.output_norm(),
                         .source = step_at(layout_.logit_rows),
                         .rows = rows,
                         .width = config_.width,
                         .epsilon = config_.norm_epsilon,
                         .activations = normed_.as<cuda::Bf16>()},
                        stream_.handle());
  multiply(weights_.output(), normed_, rows, cuda::Epilogue::kStore, logits_.as<float>(),
           config_.vocabulary);
  cuda::launch_sample(
      {.logits = logits_.as<float>(),
       .samples = reinterpret_cast<const cuda::GpuSamplingParams*>(step_at(layout_.samples)),
       .count = samples,
       .vocabulary = config_.vocabulary,
       .sampled_tokens = sampled_tokens_.as<std::uint32_t>()},
      stream_.handle());
}

}  // namespace pagoda::model
