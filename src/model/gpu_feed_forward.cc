#include "model/gpu_feed_forward.h"

#include <algorithm>

namespace pagoda::model {

namespace cuda = kernels::cuda;

namespace {

cuda::Epilogue epilogue_of(GateKind gate) {
  switch (gate) {
    case GateKind::kSwiGlu:
      return cuda::Epilogue::kSwiGlu;
    case GateKind::kGeGlu:
      return cuda::Epilogue::kGeGlu;
    case GateKind::kClampedSwiGlu:
      return cuda::Epilogue::kClampedSwiGlu;
  }
  return cuda::Epilogue::kSwiGlu;
}

cuda::Gemm dense_product(const GpuProjection& by, const cuda::Bf16* x, std::uint32_t rows,
                         const device::Buffer& out) {
  return {.weight = by.weight,
          .x = x,
          .rows = rows,
          .out = out.as<float>(),
          .out_stride = by.weight.rows,
          .bias = by.bias};
}

}  // namespace

Status GpuFeedForward::take_memory(const Config& config, std::size_t rows_max) {
  config_ = &config;
  const auto take = [](device::Buffer& to, std::uint64_t bytes, const char* what) -> Status {
    ASSIGN_OR_RETURN(to, device::Buffer::allocate(bytes, what));
    return ok_status();
  };
  const ExpertsConfig& experts = config.experts;
  const std::uint32_t widest = std::max(config.hidden_width, experts.shared_width);
  if (widest > 0) {
    RETURN_IF_ERROR(take(hidden_, 2 * cuda::activation_values(rows_max, widest), "gates"));
  }
  const kernels::Router& router = experts.router;
  if (router.experts == 0) return ok_status();
  const std::size_t pairs = rows_max * router.chosen;
  const std::size_t slots = cuda::slots_most(rows_max, router);
  const std::size_t width = config.width;
  RETURN_IF_ERROR(take(logits_, rows_max * router.experts * 4, "router logits"));
  RETURN_IF_ERROR(take(chosen_, pairs * sizeof(kernels::ChosenExpert), "chosen experts"));
  RETURN_IF_ERROR(take(groups_, cuda::groups_most(rows_max, router) * sizeof(cuda::GemmGroup),
                       "groups of rows"));
  RETURN_IF_ERROR(
      take(tiles_, cuda::tiles_most(rows_max, router) * sizeof(cuda::GemmTile), "tiles of groups"));
  RETURN_IF_ERROR(take(counts_, 2 * sizeof(std::uint32_t), "counts of groups"));
  RETURN_IF_ERROR(take(group_of_pair_, pairs * 4, "groups of rows"));
  RETURN_IF_ERROR(take(slot_of_pair_, pairs * 4, "slots of rows"));
  RETURN_IF_ERROR(take(gathered_, 2 * cuda::activation_values(slots, width), "experts' rows"));
  RETURN_IF_ERROR(take(expert_hidden_, 2 * cuda::activation_values(slots, experts.hidden_width),
                       "experts' gates"));
  RETURN_IF_ERROR(take(results_, slots * width * 4, "experts' results"));
  if (experts.shared_width == 0) return ok_status();
  RETURN_IF_ERROR(take(shared_results_, rows_max * width * 4, "the shared expert's results"));
  return take(shared_gates_, rows_max * 4, "the shared expert's gates");
}

const cuda::Bf16* GpuFeedForward::launch_hidden(const GpuNetwork& network, const cuda::Bf16* x,
                                                std::uint32_t rows, device::StreamHandle stream) {
  cuda::launch_gemm({.weight = network.gate_up.weight,
                     .x = x,
                     .rows = rows,
                     .epilogue = epilogue_of(config_->gate),
                     .bias = network.gate_up.bias,
                     .activations = hidden_.as<cuda::Bf16>()},
                    stream);
  return hidden_.as<cuda::Bf16>();
}

void GpuFeedForward::launch_experts(const GpuLayer& layer, const Inputs& x,
                                    const cuda::BatchToken* batch_tokens, std::uint32_t rows,
                                    const Output& out, device::StreamHandle stream) {
  const bool is_shared = layer.feed_forward.gate_up.weight.rows > 0;
  launch_routing(layer.experts, x, batch_tokens, rows, stream);
  launch_products(layer.experts, x.experts, rows, stream);
  if (is_shared) {
    const cuda::Bf16* const hidden = launch_hidden(layer.feed_forward, x.shared, rows, stream);
    cuda::launch_gemm(dense_product(layer.feed_forward.down, hidden, rows, shared_results_),
                      stream);
    if (layer.experts.shared_gate.weight.rows > 0) {
      cuda::launch_gemm(dense_product(layer.experts.shared_gate, x.shared, rows, shared_gates_),
                        stream);
    }
  }
  launch_mix(layer, is_shared, rows, out, stream);
}

// Chooses experts, and copies rows to where theirs stand together.
void GpuFeedForward::launch_routing(const GpuExperts& experts, const Inputs& x,
                                    const cuda::BatchToken* batch_tokens, std::uint32_t rows,
                                    device::StreamHandle stream) {
  const kernels::Router& router = config_->experts.router;
  cuda::launch_gemm(dense_product(experts.router, x.router, rows, logits_), stream);
  const bool is_one_row = rows == 1;  // its experts multiply it where it is
  cuda::launch_route_rows(
      {.router = router,
       .logits = logits_.as<float>(),
       .bias = experts.selection_bias,
       .weight_scales = experts.weight_scales,
       .batch_tokens = batch_tokens,
       .rows = rows,
       .chosen = chosen_.as<kernels::ChosenExpert>(),
       .groups = is_one_row ? groups_.as<cuda::GemmGroup>() : nullptr,
       .counts = is_one_row ? counts_.as<std::uint32_t>() : nullptr,
       .slot_of_pair = is_one_row ? slot_of_pair_.as<std::uint32_t>() : nullptr},
      stream);
  if (is_one_row) return;
  cuda::launch_group_rows({.chosen = chosen_.as<kernels::ChosenExpert>(),
                           .pairs = rows * router.chosen,
                           .experts = router.experts,
                           .groups = groups_.as<cuda::GemmGroup>(),
                           .tiles = tiles_.as<cuda::GemmTile>(),
                           .counts = counts_.as<std::uint32_t>(),
                           .group_of_pair = group_of_pair_.as<std::uint32_t>(),
                           .slot_of_pair = slot_of_pair_.as<std::uint32_t>()},
                          stream);
  cuda::launch_gather_rows({.x = x.experts,
                            .rows = rows,
                            .columns = config_->width,
                            .chosen = router.chosen,
                            .groups = groups_.as<cuda::GemmGroup>(),
                            .group_of_pair = group_of_pair_.as<std::uint32_t>(),
                            .slot_of_pair = slot_of_pair_.as<std::uint32_t>(),
                            .gathered = gathered_.as<cuda::Bf16>()},
                           stream);
}

cuda::GroupedGemm GpuFeedForward::grouped(const GpuMatrices& by, const device::Buffer& x,
                                          std::uint32_t rows) const {
  const kernels::Router& router = config_->experts.router;
  return {.gemm = {.weight = by.first,
                   .x = x.as<cuda::Bf16>(),
                   .rows = rows,
                   .out = results_.as<float>(),
                   .out_stride = config_->width,
                   .bias = by.bias},
          .weight_stride = by.stride,
          .bias_stride = by.bias_stride,
          .groups = groups_.as<cuda::GemmGroup>(),
          .tiles = tiles_.as<cuda::GemmTile>(),
          .counts = counts_.as<std::uint32_t>(),
          .groups_max = static_cast<std::uint32_t>(cuda::groups_most(rows, router)),
          .tiles_max = static_cast<std::uint32_t>(cuda::tiles_most(rows, router))};
}

void GpuFeedForward::launch_products(const GpuExperts& experts, const cuda::Bf16* x,
                                     std::uint32_t rows, device::StreamHandle stream) {
  cuda::GroupedGemm job = grouped(experts.gate_up, gathered_, rows);
  job.shares_x = rows == 1;
  if (job.shares_x) job.gemm.x = x;
  job.gemm.epilogue = epilogue_of(config_->gate);
  job.gemm.activations = expert_hidden_.as<cuda::Bf16>();
  cuda::launch_grouped_gemm(job, stream);
  cuda::launch_grouped_gemm(grouped(experts.down, expert_hidden_, rows), stream);
}

// Where experts and the shared one have norms of their own, what they add is normed first.
void GpuFeedForward::launch_mix(const GpuLayer& layer, bool is_shared, std::uint32_t rows,
                                const Output& out, device::StreamHandle stream) {
  const GpuExperts& experts = layer.experts;
  const bool has_norms = experts.output_norm != nullptr;
  const bool is_gated = experts.shared_gate.weight.rows > 0;
  cuda::launch_mix_experts(
      {.chosen = chosen_.as<kernels::ChosenExpert>(),
       .chosen_each = config_->experts.router.chosen,
       .slot_of_pair = slot_of_pair_.as<std::uint32_t>(),
       .results = results_.as<float>(),
       .shared = is_shared && !has_norms ? shared_results_.as<float>() : nullptr,
       .shared_gates = is_gated ? shared_gates_.as<float>() : nullptr,
       .rows = rows,
       .width = config_->width,
       .adds = out.adds,
       .scale = config_->residual_scale,
       .out = out.rows},
      stream);
  if (!has_norms) return;
  cuda::launch_row_norm({.values = out.rows,
                         .stride = config_->width,
                         .weight = experts.output_norm,
                         .rows = rows,
                         .width = config_->width,
                         .epsilon = config_->norm_epsilon},
                        stream);
  if (!is_shared) return;
  cuda::launch_add_branch({.branch = shared_results_.as<float>(),
                           .weight = experts.shared_output_norm,
                           .rows = rows,
                           .width = config_->width,
                           .epsilon = config_->norm_epsilon,
                           .residual = out.rows},
                          stream);
}

}  // namespace pagoda::model
