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
Status check_heads(const kv::memory::PageLayout& layout) {
  const bool fits =
      layout.values_in_keys
          ? layout.key_dim <= cuda::kLatentDimMax && layout.value_dim <= cuda::kHeadDimMax
          : layout.key_dim <= cuda::kHeadDimMax && layout.value_dim == layout.key_dim;
  if (fits && layout.key_row_bytes() % 16 == 0 && layout.value_row_bytes() % 16 == 0 &&
      layout.value_dim % 16 == 0) {
    return ok_status();
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("the GPU runs heads of 16, 32, … {} dimensions and latents of up to {}; this "
                  "model's have {} key and {} value dimensions: use `device=cpu`",
                  cuda::kHeadDimMax, cuda::kLatentDimMax, layout.key_dim, layout.value_dim)};
}

Status check_shape(const Config& config, const GpuDecoderOptions& options) {
  RETURN_IF_ERROR(check_operations(config));
  RETURN_IF_ERROR(check_gpu_kv_cache_dtype(options.kv_cache_dtype));
  RETURN_IF_ERROR(check_kv_cache_dtype(config, options.kv_cache_dtype));
  const std::uint32_t block = options.block_tokens;
  if (!std::has_single_bit(block) || block < 16 || block > 128) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`block_size`: is {}, but the GPU takes 16, 32, 64 or 128", block)};
  }
  const auto plan = plan_gpu_kv_groups(config, options.kv_cache_dtype, options.block_tokens);
  for (const kv::memory::PageLayout& layout : plan.layouts) RETURN_IF_ERROR(check_heads(layout));
  return ok_status();
}

constexpr std::uint32_t kStepsWithoutGraphs = 256;

GpuStepLimits step_limits(const Config& config, const GpuDecoderOptions& options,
                          const kv::memory::CacheGroupPlan& groups) {
  GpuStepLimits limits = {.rows_max = options.rows_max,
                          .sequences_max = options.sequences_max,
                          .logit_rows_max = options.sequences_max + options.draft_rows_max,
                          .context_tokens = options.context_tokens,
                          .block_tokens = options.block_tokens};
  for (std::size_t i = 0; i < groups.groups.size(); ++i) {
    const kv::memory::PageLayout& layout = groups.layouts[i];
    limits.attention.push_back(
        {.heads = config.heads,
         .kv_heads = layout.kv_heads,
         .window = groups.groups[i].window,
         .head_dim = layout.key_dim,
         .has_wide_tiles = cuda::is_plain_attention(layout, config.score_cap)});
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
      group_plan_(plan_gpu_kv_groups(config, options.kv_cache_dtype, options.block_tokens)) {}

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
  const std::size_t logit_rows = launched_rows(logit_rows_max());
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
  RETURN_IF_ERROR(take(sink_query_, rows * queries * 2, "queries at sinks"));
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

// Behind the table there is room for rows of `row_floats` floats.
Status GpuDecoder::send_floats(device::Buffer& to, const std::vector<float>& from,
                               std::size_t row_floats) {
  const std::uint64_t room = std::uint64_t{launched_rows(options_.rows_max)} * row_floats;
  ASSIGN_OR_RETURN(to, device::Buffer::allocate((from.size() + room) * 4, "rotations"));
  return weights_.uploads().upload(stream_, std::as_bytes(std::span(from)), to.data(),
                                   "a rotary table");
}

// The file's divisors are those of the first rotation.
Status GpuDecoder::fill_ropes(std::span<const float> divisors) {
  std::size_t far_floats = config_.query_scale ? 1 : 0;  // of a row
  for (const RopeConfig& config : config_.ropes) {
    const RopeTable rope(config, ropes_.empty() ? divisors : std::span<const float>());
    std::vector<float> cosines(options_.context_tokens * rope.pairs());
    std::vector<float> sines(cosines.size());
    for (std::uint64_t position = 0; position < options_.context_tokens; ++position) {
      rope.fill(position, cosines.data() + position * rope.pairs(),
                sines.data() + position * rope.pairs());
    }
    GpuRope& made = ropes_.emplace_back(GpuRope{rope, {}, {}});
    RETURN_IF_ERROR(send_floats(made.cosines, cosines, rope.pairs()));
    RETURN_IF_ERROR(send_floats(made.sines, sines, rope.pairs()));
    far_floats += 2 * rope.pairs();
  }
  for (device::PinnedBuffer& host : far_rows_) {
    const std::uint64_t bytes = std::uint64_t{options_.rows_max} * far_floats * 4;
    ASSIGN_OR_RETURN(host, device::PinnedBuffer::allocate(std::max<std::uint64_t>(bytes, 4),
                                                          "rotations of a step"));
  }
  return ok_status();
}

Status GpuDecoder::fill_query_factors() {
  if (!config_.query_scale) return ok_status();
  std::vector<float> factors(options_.context_tokens);
  for (std::uint64_t position = 0; position < factors.size(); ++position) {
    factors[position] = query_factor(*config_.query_scale, position);
  }
  return send_floats(query_factors_, factors, 1);
}

// Sends the rotations of rows whose positions tables do not have: sequences under a KV policy may
// be longer than the context. Kernels find them behind the tables, by their row (RopeAndStoreKv).
// Two host buffers take turns, as those of a step.
Status GpuDecoder::fill_far_rows(std::span<const GpuRows> sequences) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> far;  // row and position
  std::uint32_t row = 0;
  for (const GpuRows& sequence : sequences) {
    for (std::uint32_t i = 0; i < sequence.rows; ++i, ++row) {
      const std::uint64_t position = sequence.first_position + i;
      if (position >= options_.context_tokens) far.emplace_back(row, position);
    }
  }
  if (far.empty()) return ok_status();
  const std::uint32_t first = far.front().first;
  const std::size_t rows = far.back().first - first + 1;  // rows between are not read
  auto* host = far_rows_[far_turn_++ % 2].as<float>();
  const auto send = [&](const device::Buffer& to, std::size_t each) -> Status {
    const std::uint64_t at = (options_.context_tokens + first) * each * 4;
    RETURN_IF_ERROR(stream_.copy_to_device(to.data() + at, reinterpret_cast<const std::byte*>(host),
                                           rows * each * 4));
    host += rows * each;
    return ok_status();
  };
  for (const GpuRope& rope : ropes_) {
    const std::size_t pairs = rope.table.pairs();
    for (const auto& [own, position] : far) {
      float* const cosines = host + (own - first) * pairs;
      rope.table.fill(position, cosines, cosines + rows * pairs);
    }
    RETURN_IF_ERROR(send(rope.cosines, pairs));
    RETURN_IF_ERROR(send(rope.sines, pairs));
  }
  if (!config_.query_scale) return ok_status();
  for (const auto& [own, position] : far) {
    host[own - first] = query_factor(*config_.query_scale, position);
  }
  return send(query_factors_, 1);
}

Status GpuDecoder::forward(std::span<const GpuRows> sequences,
                           std::span<const std::uint32_t> logit_rows,
                           std::span<const cuda::GpuSamplingParams> samples) {
  ASSERT(logit_rows.size() <= logit_rows_max(), "more rows of logits than memory was taken for");
  ASSERT(samples.size() <= logit_rows_max(), "more samples than memory was taken for");
  ASSERT(pages_ != nullptr, "pages are set before the first step");
  const GpuStepShape shape = step_.write(sequences, logit_rows, samples);
  RETURN_IF_ERROR(step_.send(stream_, shape));
  RETURN_IF_ERROR(fill_far_rows(sequences));
  return options_.graphs && shape.decodes ? launch_as_graph(shape) : launch_step(shape);
}

// After a graph could not be made, steps run without graphs for a while, because the kept graphs
// hold memory that may have been missing.
Status GpuDecoder::launch_as_graph(const GpuStepShape& shape) {
  const device::Graph* graph = graphs_.find(shape);
  if (graph == nullptr && steps_without_graphs_ == 0) {
    Result<device::Graph> made = capture(shape);
    ++graphs_made_;
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
