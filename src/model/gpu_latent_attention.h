// The projections around latent attention (LatentConfig) on a GPU: queries into the latents' space,
// the row that a token keeps, and back to the width of heads. Attention itself is that of one KV
// head. All is as on CPUs (latent_attention.h), so that prefill and decode have the same bits.
//
// Calls launch work on a stream and return. Memory is taken once.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "device/device.h"
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/ops.h"
#include "model/config.h"
#include "model/gpu_weights.h"

namespace pagoda::model {

class GpuLatentAttention {
 public:
  // The configuration must outlive the object; `rows_max` rows at most are computed at once.
  Status take_memory(const Config& config, std::size_t rows_max);

  // Computes rows to keep and queries of activations x, and stores both as `to` says.
  void launch_project(const GpuLayer& layer, const kernels::cuda::Bf16* x,
                      const kernels::cuda::RopeAndStoreKv& to, device::StreamHandle stream);
  // Where attention puts its results.
  kernels::cuda::Bf16* attended() const { return attended_.as<kernels::cuda::Bf16>(); }
  // The same, [rows, heads, rank] in fp32: where queries were, which are stored by then.
  float* rotated() const { return absorbed_.as<float>(); }
  // Packs the outputs of all heads as activations of the output projection.
  void launch_mix(const GpuLatent& latent, std::uint32_t rows, kernels::cuda::Bf16* mixed,
                  device::StreamHandle stream);

 private:
  void launch_queries(const GpuLatent& latent, const kernels::cuda::Bf16* x, std::uint32_t rows,
                      device::StreamHandle stream);
  kernels::cuda::GroupedGemm by_head(const GpuMatrices& by, const device::Buffer& x,
                                     std::uint32_t rows, const device::Buffer& out) const;

  const Config* config_ = nullptr;
  std::uint32_t query_dim_ = 0;   // of a head
  device::Buffer keys_;           // [rows_max, key_dim] fp32
  device::Buffer query_latents_;  // [rows_max, query_rank] fp32
  device::Buffer query_normed_;   // activations of query_rank
  device::Buffer raw_queries_;    // [rows_max, heads, query_dim] fp32
  device::Buffer parts_;          // [heads] activations of plain_dim
  device::Buffer absorbed_;       // [rows_max, heads, rank] fp32
  device::Buffer attended_;       // [heads] activations of rank
  device::Buffer outputs_;        // [rows_max, heads, value_dim] fp32
};

}  // namespace pagoda::model
