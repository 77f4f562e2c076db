#include "kernels/ref/rows.h"

#include <cmath>
#include <cstring>

#include "kernels/exp.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/finite.h"
#include "kernels/ref/lane_reduction.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::ref {

void unpack_row(const WeightMatrix& weight, std::size_t row, float* out) {
  dequantise_row(weight.type, weight.data + row * weight.row_bytes, out, weight.columns);
}

// Floats are multiplied as they stand in the file and as they come.
std::size_t packed_bytes(const WeightMatrix&) { return 0; }
void pack(const WeightMatrix&, std::size_t, std::size_t, std::byte*) {}
void pack_activations(const float* x, std::size_t columns, std::byte* activations,
                      std::size_t row) {
  std::memcpy(activations + row * fp32_activation_stride(columns), x, columns * sizeof(float));
}

std::size_t matmul_scratch(std::size_t columns) { return columns * sizeof(float); }

void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch) {
  auto* const weights = reinterpret_cast<float*>(scratch);
  const std::size_t stride = fp32_activation_stride(job.weight.columns);
  for (std::size_t n = begin; n < end; ++n) {
    unpack_row(job.weight, n, weights);
    for (std::size_t r = 0; r < job.rows; ++r) {
      const auto* const x = reinterpret_cast<const float*>(job.x + r * stride);
      const float sum = dot(x, weights, job.weight.columns);
      float& y = job.y[r * job.y_stride + n];
      y = job.accumulate ? y + sum : sum;
    }
  }
}

void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, float* y) {
  const float mean = dot(x, x, width) / static_cast<float>(width);
  const float factor = 1.0f / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < width; ++i) y[i] = x[i] * factor * weight[i];
}

void rope(float* head, const RopeRow& rope) {
  const bool adjacent = rope.pairing == RopePairing::kAdjacent;
  for (std::size_t i = 0; i < rope.pairs; ++i) {
    float& first = head[adjacent ? 2 * i : i];
    float& second = head[adjacent ? 2 * i + 1 : i + rope.pairs];
    const float a = first;
    const float b = second;
    first = a * rope.cosines[i] - b * rope.sines[i];
    second = a * rope.sines[i] + b * rope.cosines[i];
  }
}

void swiglu(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    gate[i] = gate[i] / (1.0f + exp_fixed(-gate[i])) * up[i];
  }
}

void geglu(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float inner = gate[i] * std::fma(gate[i] * gate[i], kGeluCubic, kGeluLinear);
    gate[i] = gate[i] / (1.0f + exp_fixed(-inner)) * up[i];
  }
}

void clamped_swiglu(float* gate, const float* up, std::size_t count) {
  // Comparisons keep NaN, as std::min and std::max of these orders do not.
  const auto at_most = [](float x) { return kClampedGateMax < x ? kClampedGateMax : x; };
  const auto at_least = [](float x) { return -kClampedGateMax > x ? -kClampedGateMax : x; };
  for (std::size_t i = 0; i < count; ++i) {
    const float g = at_most(gate[i]);
    const float u = at_least(at_most(up[i]));
    gate[i] = g / (1.0f + exp_fixed(-(g * kClampedGateSlope))) * (u + 1.0f);
  }
}

void soft_cap(float* x, std::size_t count, float scale, float cap) {
  const float slope = 2.0f * scale / cap;
  for (std::size_t i = 0; i < count; ++i) {
    const float e = exp_fixed(x[i] * slope);
    x[i] = (e - 1.0f) / (e + 1.0f) * cap;
  }
}

bool store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  return store_finite_heads(Numerics::kFp32, view, position, keys, values,
                            [&](std::uint32_t head, const float* key, const float* value) {
                              kv::memory::encode_row(layout.elements.keys, key, layout.key_dim,
                                                     view.key_row(head, position));
                              if (layout.values_in_keys) return;
                              kv::memory::encode_row(layout.elements.values, value,
                                                     layout.value_dim,
                                                     view.value_row(head, position));
                            });
}

}  // namespace pagoda::kernels::ref
