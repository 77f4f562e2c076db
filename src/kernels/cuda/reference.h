// The GPU's numerics (ops.h) in plain C++, on host memory and in the same order: what its kernels
// are compared with. Norms agree to the bit. GEMMs agree within what a tensor core cuts off in a
// step, and attention within that and ex2.approx: bounds are stated where they are tested.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda::reference {

// Weight (row, column) times its group's scale, plus the group's minimum, out of packed bytes.
float weight_at(WeightFormat format, const std::byte* packed, std::size_t columns, std::size_t row,
                std::size_t column);

// y[n] for weight rows [0, rows), x: [columns] bf16.
std::vector<float> gemm(WeightFormat format, const std::byte* packed, std::size_t rows,
                        std::size_t columns, const Bf16* x);

// y: [width] bf16
void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, Bf16* y);

// Normalises a head in place, [width].
void qk_norm(float* head, const float* weight, float epsilon, std::size_t width);

float swiglu(float gate, float up);
float geglu(float gate, float up);
float clamped_swiglu(float gate, float up);
// cap * tanh(scale * x / cap)
float soft_cap(float x, float scale, float cap);

// Normalises a row in place in fp32, with the sums of rms_norm(), [width].
void row_norm(float* x, const float* weight, float epsilon, std::size_t width);

// The number that a value of a row is on a GPU: of codes the nearest fp16.
float cached(kv::memory::Element element, float value);

// One query over keys [keys, dim] and values [keys, value_dim] as floats that the cache's element
// holds exactly, or cached(); visible are keys [first, position] and, where a row sees a gap, keys
// [0, sinks) to the query `sink_q`.
struct Query {
  const float* q = nullptr;
  std::size_t dim = 0;
  std::size_t value_dim = 0;  // 0: as dim
  float scale = 1;
  std::uint64_t first = 0;
  std::uint64_t position = 0;
  bool bf16_weights = true;  // softmax weights are rounded to bf16, else to fp16
  float cap = 0;             // of scores; 0: none
  std::optional<float> sink = {};
  const float* sink_q = nullptr;
  std::uint64_t sinks = 0;
};
std::vector<float> attention(const Query& query, const float* keys, const float* values);

// The token that launch_sample() gives, to the bit.
std::uint32_t sample(std::span<const float> logits, const GpuSamplingParams& params);

}  // namespace pagoda::kernels::cuda::reference
