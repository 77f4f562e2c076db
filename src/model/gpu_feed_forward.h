// The feed-forward half of a layer on a GPU: a dense network, or a mixture of experts.
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

class GpuFeedForward {
 public:
  // The configuration must outlive the object; `rows_max` rows at most are computed at once.
  Status take_memory(const Config& config, std::size_t rows_max);

  // The activations that router, experts and the shared expert multiply.
  struct Inputs {
    const kernels::cuda::Bf16* router;
    const kernels::cuda::Bf16* experts;
    const kernels::cuda::Bf16* shared;
  };

  // Returns the activations that the network's `down` multiplies.
  const kernels::cuda::Bf16* launch_hidden(const GpuNetwork& network, const kernels::cuda::Bf16* x,
                                           std::uint32_t rows, device::StreamHandle stream);
  // Where the result of a mixture goes, [rows, width]: written, or, scaled, added to what is there.
  struct Output {
    float* rows;
    bool adds;
  };
  // Computes what the experts and the shared one add. Layers whose experts have norms of their own
  // write.
  void launch_experts(const GpuLayer& layer, const Inputs& x,
                      const kernels::cuda::BatchToken* batch_tokens, std::uint32_t rows,
                      const Output& out, device::StreamHandle stream);
  // The experts that each row chose in the last call of launch_experts(), [rows, chosen].
  const kernels::ChosenExpert* chosen() const { return chosen_.as<kernels::ChosenExpert>(); }

 private:
  void launch_routing(const GpuExperts& experts, const Inputs& x,
                      const kernels::cuda::BatchToken* batch_tokens, std::uint32_t rows,
                      device::StreamHandle stream);
  void launch_products(const GpuExperts& experts, const kernels::cuda::Bf16* x, std::uint32_t rows,
                       device::StreamHandle stream);
  kernels::cuda::GroupedGemm grouped(const GpuMatrices& by, const device::Buffer& x,
                                     std::uint32_t rows) const;
  void launch_mix(const GpuLayer& layer, bool is_shared, std::uint32_t rows, const Output& out,
                  device::StreamHandle stream);

  const Config* config_ = nullptr;
  device::Buffer hidden_;  // activations of a dense network or of the shared expert
  // Only mixtures of experts use the following.
  device::Buffer logits_;          // [rows_max, experts] fp32
  device::Buffer chosen_;          // [rows_max, chosen] ChosenExpert
  device::Buffer groups_;          // GemmGroup
  device::Buffer tiles_;           // GemmTile
  device::Buffer counts_;          // [2]: groups, tiles
  device::Buffer group_of_pair_;   // [rows_max, chosen]
  device::Buffer slot_of_pair_;    // the same
  device::Buffer gathered_;        // activations of width, in slots
  device::Buffer expert_hidden_;   // activations of an expert's hidden width, in slots
  device::Buffer results_;         // [slots, width] fp32
  device::Buffer shared_results_;  // [rows_max, width] fp32
  device::Buffer shared_gates_;    // [rows_max] fp32
};

}  // namespace pagoda::model
