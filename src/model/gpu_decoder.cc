#include "model/gpu_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "model/kv_groups.h"
#include "model/rope.h"

namespace pagoda::model {

namespace cuda = kernels::cuda;

namespace {

kv::memory::CacheGroupPlan cache_groups_of(const Config& config, const GpuDecoderOptions& options) {
  std::vector<kv::memory::LayerKind> layers;
  for (std::uint32_t layer = 0; layer < config.layers - config.shared_kv_layers; ++layer) {
    const HeadShape heads = config.heads_of(layer);
    const kv::memory::PageLayout one_layer = {.elements = options.kv_element,
                                              .block_tokens = options.block_tokens,
                                              .layers = 1,
                                              .kv_heads = heads.kv_heads,
                                              .key_dim = heads.key_dim,
                                              .value_dim = heads.value_dim,
                                              .values_in_keys = config.latent.rank > 0};
    layers.push_back({config.attention[layer], one_layer});
  }
  return kv::memory::plan_cache_groups(layers);
}

// The operations that the GPU lacks are refused by name.
Status check_operations(const Config& config) {
  const char* lacks = nullptr;
  const kernels::Router& router = config.experts.router;
  if (router.experts > cuda::kExpertsMax || router.chosen > cuda::kChosenMax ||
      router.groups > cuda::kExpertGroupsMax) {
    lacks = "more than 512 experts, 32 chosen ones or 32 groups of them";
  }
  if (lacks == nullptr) return ok_status();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("this model has {}, which the GPU does not run: use `device=cpu`", lacks)};
}

// Rows of keys and values are whole numbers of 16 bytes, and values of 16 dimensions.
Status check_heads(const HeadShape& heads, bool is_latent, kv::memory::Element element) {
  const std::size_t row_bytes = heads.key_dim * kv::memory::unit_bytes(element);
  const bool fits =
      is_latent ? heads.key_dim <= cuda::kLatentDimMax && heads.value_dim <= cuda::kHeadDimMax
                : heads.key_dim <= cuda::kHeadDimMax && heads.value_dim == heads.key_dim;
  if (fits && row_bytes % 16 == 0 && heads.value_dim % 16 == 0) return ok_status();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("the GPU runs heads of 16, 32, … {} dimensions and latents of up to {}; this "
                  "model's have {} key and {} value dimensions: use `device=cpu`",
                  cuda::kHeadDimMax, cuda::kLatentDimMax, heads.key_dim, heads.value_dim)};
}

Status check_shape(const Config& config, const GpuDecoderOptions& options) {
  RETURN_IF_ERROR(check_operations(config));
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    RETURN_IF_ERROR(
        check_heads(config.heads_of(layer), config.latent.rank > 0, options.kv_element));
  }
  const std::uint32_t block = options.block_tokens;
  if (!std::has_single_bit(block) || block < 16 || block > 128) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`block_size`: is {}, but the GPU takes 16, 32, 64 or 128", block)};
  }
  return check_gpu_kv_cache_dtype(options.kv_element);
}

constexpr std::uint32_t kStepsWithoutGraphs = 256;

GpuStepLimits step_limits(const Config& config, const GpuDecoderOptions& options,
                          const kv::memory::CacheGroupPlan& groups) {
  GpuStepLimits limits = {.rows_max = options.rows_max,
                          .sequences_max = options.sequences_max,
                          .context_tokens = options.context_tokens,
                          .block_tokens = options.block_tokens};
  for (std::size_t i = 0; i < groups.groups.size(); ++i) {
    const kv::memory::PageLayout& layout = groups.layouts[i];
    // Wide tiles are copied to the tensor cores as they are, so that they need 2-byte elements.
    const bool has_wide_tiles = cuda::is_plain_attention(layout, config.score_cap) &&
                                kv::memory::unit_bytes(options.kv_element) == 2;
    limits.attention.push_back({.heads = config.heads,
                                .kv_heads = layout.kv_heads,
                                .window = groups.groups[i].window,
                                .head_dim = layout.key_dim,
                                .has_wide_tiles = has_wide_tiles});
  }
  return limits;
}

}  // namespace

GpuDecoder::GpuDecoder(const Config& config, GpuWeights weights, device::Stream stream,
                       const GpuDecoderOptions& options)
    : config_(config),
      weights_(std::move(weights)),
      stream_(std::move(stream)),
      options_(options),
      group_plan_(cache_groups_of(config, options)) {}

Status GpuDecoder::check(const Config& config, const GpuDecoderOptions& options) {
  return check_shape(config, options);
}

Result<std::unique_ptr<GpuDecoder>> GpuDecoder::create(const Config& config, GpuWeights weights,
                                                       std::span<const float> rope_divisors,
                                                       const GpuDecoderOptions& options) {
  RETURN_IF_ERROR(check_shape(config, options));
  RETURN_IF_ERROR(cuda::prepare_kernels());
  ASSIGN_OR_RETURN(device::Stream stream, device::Stream::create());
  std::unique_ptr<GpuDecoder> decoder(
      new GpuDecoder(config, std::move(weights), std::move(stream), options));
  RETURN_IF_ERROR(decoder->take_memory());
  RETURN_IF_ERROR(decoder->fill_ropes(rope_divisors));
  RETURN_IF_ERROR(decoder->fill_query_factors());
  return decoder;
}

Status GpuDecoder::take_memory() {
  const std::size_t rows = launched_rows(options_.rows_max);
  const std::size_t logit_rows = launched_rows(options_.sequences_max);
  std::size_t queries = 0;  // values of a row
  std::size_t qkv = 0;
  std::size_t mixed = 0;
  std::size_t partial = 0;
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    const HeadShape heads = config_.heads_of(layer);
    queries = std::max<std::size_t>(queries, std::size_t{config_.heads} * heads.key_dim);
    qkv = std::max(qkv, std::size_t{config_.heads + 2 * heads.kv_heads} * heads.key_dim);
    mixed = std::max(mixed, config_.mixed_width(layer));
    partial = std::max(partial, cuda::partial_floats(heads.value_dim));
  }
  const auto take = [](device::Buffer& to, std::uint64_t bytes, const char* what) -> Status {
    ASSIGN_OR_RETURN(to, device::Buffer::allocate(bytes, what));
    return ok_status();
  };
  RETURN_IF_ERROR(take(residual_, rows * config_.width * 4, "the residual stream"));
  if (config_.branch_norms != BranchNorms::kInput || config_.residual_scale != 1 ||
      config_.has_output_scales || config_.experts.router.experts > 0) {
    RETURN_IF_ERROR(take(branch_, rows * config_.width * 4, "branches"));
  }
  RETURN_IF_ERROR(take(
      normed_, 2 * cuda::activation_values(std::max(rows, logit_rows), config_.width), "norms"));
  if (config_.experts.has_own_norms) {
    const std::uint64_t bytes = 2 * cuda::activation_values(rows, config_.width);
    RETURN_IF_ERROR(take(router_normed_, bytes, "norms"));
    RETURN_IF_ERROR(take(expert_normed_, bytes, "norms"));
  }
  if (config_.latent.rank == 0) {
    RETURN_IF_ERROR(take(qkv_, rows * qkv * 4, "queries, keys and values"));
  }
  RETURN_IF_ERROR(take(query_, rows * queries * 2, "queries"));
  RETURN_IF_ERROR(take(mixed_, 2 * cuda::activation_values(rows, mixed), "attention"));
  RETURN_IF_ERROR(feed_forward_.take_memory(config_, rows));
  if (config_.latent.rank > 0) {
    RETURN_IF_ERROR(latent_attention_.emplace().take_memory(config_, rows));
  }
  RETURN_IF_ERROR(take(logits_, logit_rows * config_.vocabulary * 4, "logits"));
  RETURN_IF_ERROR(take(sampled_tokens_, logit_rows * 4, "sampled_tokens"));
  RETURN_IF_ERROR(step_.take_memory(step_limits(config_, options_, group_plan_)));
  return take(partials_, step_.partial_rows() * partial * 4, "partial attention");
}

Status GpuDecoder::send_floats(device::Buffer& to, const std::vector<float>& from) {
  ASSIGN_OR_RETURN(to, device::Buffer::allocate(from.size() * 4, "rotations"));
  return weights_.uploads().upload(stream_, std::as_bytes(std::span(from)), to.data(),
                                   "a rotary table");
}

// The file's divisors are those of the first rotation.
Status GpuDecoder::fill_ropes(std::span<const float> divisors) {
  for (const RopeConfig& config : config_.ropes) {
    const RopeTable rope(config, ropes_.empty() ? divisors : std::span<const float>());
    std::vector<float> cosines(options_.context_tokens * rope.pairs());
    std::vector<float> sines(cosines.size());
    for (std::uint64_t position = 0; position < options_.context_tokens; ++position) {
      rope.fill(position, cosines.data() + position * rope.pairs(),
                sines.data() + position * rope.pairs());
    }
    GpuRope& made = ropes_.emplace_back();
    RETURN_IF_ERROR(send_floats(made.cosines, cosines));
    RETURN_IF_ERROR(send_floats(made.sines, sines));
  }
  return ok_status();
}

Status GpuDecoder::fill_query_factors() {
  if (!config_.query_scale) return ok_status();
  std::vector<float> factors(options_.context_tokens);
  for (std::uint64_t position = 0; position < factors.size(); ++position) {
    factors[position] = query_factor(*config_.query_scale, position);
  }
  return send_floats(query_factors_, factors);
}

Status GpuDecoder::forward(std::span<const GpuRows> sequences,
                           std::span<const std::uint32_t> logit_rows,
                           std::span<const cuda::GpuSamplingParams> samples) {
  ASSERT(logit_rows.size() <= logit_rows_max(), "more rows of logits than memory was taken for");
  ASSERT(samples.size() <= logit_rows_max(), "more samples than memory was taken for");
  ASSERT(pages_ != nullptr, "pages are set before the first step");
  const GpuStepShape shape = step_.write(sequences, logit_rows, samples);
  RETURN_IF_ERROR(step_.send(stream_, shape));
  return options_.graphs && shape.decodes ? launch_as_graph(shape) : launch_step(shape);
}

// After a graph could not be made, steps run without graphs for a while, because the kept graphs
// hold memory that may have been missing.
Status GpuDecoder::launch_as_graph(const GpuStepShape& shape) {
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

Result<device::Graph> GpuDecoder::capture(const GpuStepShape& shape) {
  RETURN_IF_ERROR(stream_.begin_capture());
  const Status launched = launch_step(shape);
  Result<device::Graph> captured = stream_.end_capture();
  RETURN_IF_ERROR(launched);
  return captured;
}

Status GpuDecoder::check_uploads() { return weights_.uploads().check(stream_); }

Status GpuDecoder::logits(std::span<const std::uint32_t> rows) {
  RETURN_IF_ERROR(step_.send_logit_rows(stream_, rows));
  launch_logits(static_cast<std::uint32_t>(rows.size()), 0);
  return device::last_launch_error();
}

Status GpuDecoder::hidden(std::span<const std::uint32_t> rows) {
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::uint32_t count = consecutive_rows(rows.subspan(begin));
    cuda::launch_row_norm(
        {.values = residual_.as<float>() + std::size_t{rows[begin]} * config_.width,
         .stride = config_.width,
         .weight = weights_.output_norm(),
         .rows = count,
         .width = config_.width,
         .epsilon = config_.norm_epsilon},
        stream_.handle());
    begin += count;
  }
  return device::last_launch_error();
}

}  // namespace pagoda::model
