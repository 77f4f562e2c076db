#include "model/gpu_latent_attention.h"

namespace pagoda::model {

namespace cuda = kernels::cuda;

Status GpuLatentAttention::take_memory(const Config& config, std::size_t rows_max) {
  config_ = &config;
  const LatentConfig& latent = config.latent;
  query_dim_ = latent.query_dim(config.key_dim - latent.rank);
  const auto take = [](device::Buffer& to, std::uint64_t bytes) -> Status {
    ASSIGN_OR_RETURN(to, device::Buffer::allocate(bytes, "latents"));
    return ok_status();
  };
  const auto activations = [&](std::size_t columns) {
    return 2 * cuda::activation_values(rows_max, columns);
  };
  const std::size_t heads = config.heads;
  RETURN_IF_ERROR(take(keys_, rows_max * config.key_dim * 4));
  if (latent.query_rank > 0) {
    RETURN_IF_ERROR(take(query_latents_, rows_max * latent.query_rank * 4));
    RETURN_IF_ERROR(take(query_normed_, activations(latent.query_rank)));
  }
  RETURN_IF_ERROR(take(raw_queries_, rows_max * heads * query_dim_ * 4));
  RETURN_IF_ERROR(take(parts_, heads * activations(latent.plain_dim)));
  RETURN_IF_ERROR(take(absorbed_, rows_max * heads * latent.rank * 4));
  RETURN_IF_ERROR(take(attended_, heads * activations(latent.rank)));
  return take(outputs_, rows_max * heads * latent.value_dim * 4);
}

// Every head has a matrix of its own and all rows; outputs stand head by head in a row.
cuda::GroupedGemm GpuLatentAttention::by_head(const GpuMatrices& by, const device::Buffer& x,
                                              std::uint32_t rows, const device::Buffer& out) const {
  return {.gemm = {.weight = by.first,
                   .x = x.as<cuda::Bf16>(),
                   .rows = rows,
                   .out = out.as<float>(),
                   .out_stride = std::size_t{config_->heads} * by.first.rows},
          .weight_stride = by.stride,
          .groups_max = config_->heads,
          .group_columns = by.first.rows};
}

void GpuLatentAttention::launch_queries(const GpuLatent& latent, const cuda::Bf16* x,
                                        std::uint32_t rows, device::StreamHandle stream) {
  const std::uint32_t rank = config_->latent.query_rank;
  if (rank > 0) {
    cuda::launch_gemm({.weight = latent.query_down.weight,
                       .x = x,
                       .rows = rows,
                       .out = query_latents_.as<float>(),
                       .out_stride = rank,
                       .bias = latent.query_down.bias},
                      stream);
    cuda::launch_rms_norm({.residual = query_latents_.as<float>(),
                           .weight = latent.query_norm,
                           .rows = rows,
                           .width = rank,
                           .epsilon = LatentConfig::kNormEpsilon,
                           .activations = query_normed_.as<cuda::Bf16>()},
                          stream);
    x = query_normed_.as<cuda::Bf16>();
  }
  cuda::launch_gemm({.weight = latent.query.weight,
                     .x = x,
                     .rows = rows,
                     .out = raw_queries_.as<float>(),
                     .out_stride = std::size_t{config_->heads} * query_dim_,
                     .bias = latent.query.bias},
                    stream);
  cuda::launch_pack_heads({.values = raw_queries_.as<float>(),
                           .stride = query_dim_,
                           .rows = rows,
                           .heads = config_->heads,
                           .width = config_->latent.plain_dim,
                           .activations = parts_.as<cuda::Bf16>()},
                          stream);
  cuda::launch_grouped_gemm(by_head(latent.key_up, parts_, rows, absorbed_), stream);
}

void GpuLatentAttention::launch_project(const GpuLayer& layer, const cuda::Bf16* x,
                                        const cuda::RopeAndStoreKv& to,
                                        device::StreamHandle stream) {
  const GpuLatent& latent = layer.latent;
  cuda::launch_gemm({.weight = latent.down.weight,
                     .x = x,
                     .rows = to.rows,
                     .out = keys_.as<float>(),
                     .out_stride = config_->key_dim,
                     .bias = latent.down.bias},
                    stream);
  cuda::launch_row_norm({.values = keys_.as<float>(),
                         .stride = config_->key_dim,
                         .weight = latent.norm,
                         .rows = to.rows,
                         .width = config_->latent.rank,
                         .epsilon = LatentConfig::kNormEpsilon},
                        stream);
  launch_queries(latent, x, to.rows, stream);
  cuda::launch_rope_and_store_latents({.keys = keys_.as<float>(),
                                       .absorbed = absorbed_.as<float>(),
                                       .raw_queries = raw_queries_.as<float>(),
                                       .query_dim = query_dim_,
                                       .to = to},
                                      stream);
}

void GpuLatentAttention::launch_mix(const GpuLatent& latent, std::uint32_t rows, cuda::Bf16* mixed,
                                    device::StreamHandle stream) {
  cuda::launch_grouped_gemm(by_head(latent.value_up, attended_, rows, outputs_), stream);
  cuda::launch_rms_norm({.residual = outputs_.as<float>(),
                         .rows = rows,
                         .width = config_->heads * config_->latent.value_dim,
                         .activations = mixed},
                        stream);
}

}  // namespace pagoda::model
