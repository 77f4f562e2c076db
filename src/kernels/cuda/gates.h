// How the two halves of a feed-forward layer are joined, and the soft cap, operation by operation:
// the same source on the GPU and in its reference. `Math` has exp2() and fma(); divisions round to
// the nearest. Device code includes this.
#pragma once

#include "kernels/cuda/ops.h"
#include "kernels/ops.h"

// nvcc compiles these for the device, other compilers for the host.
#ifdef __CUDACC__
#define PAGODA_GATE __device__ __forceinline__
#else
#define PAGODA_GATE inline
#endif

namespace pagoda::kernels::cuda {

inline constexpr float kGateLog2E = 1.44269504088896341f;
inline constexpr float kCapPowerMax = 120.0f;  // from there on the soft cap's tanh is 1

// kSwiGlu: gate / (1 + exp(-gate)) * up; kGeGlu: the tanh form of gelu; kClampedSwiGlu: that of
// gpt-oss (kernels/ops.h). One exponential and one division serve all three: in the epilogue of a
// GEMM they stand as often as a thread has outputs. Comparisons keep NaN.
template <class Math>
PAGODA_GATE float gate_of(Epilogue kind, float gate, float up) {
  if (kind == Epilogue::kClampedSwiGlu) {
    gate = gate > kClampedGateMax ? kClampedGateMax : gate;
    up = up > kClampedGateMax ? kClampedGateMax : up;
    up = (up < -kClampedGateMax ? -kClampedGateMax : up) + 1.0f;
  }
  float inner = gate;
  if (kind == Epilogue::kGeGlu) inner = gate * Math::fma(gate * gate, kGeluCubic, kGeluLinear);
  if (kind == Epilogue::kClampedSwiGlu) inner = gate * kClampedGateSlope;
  return gate / (1.0f + Math::exp2(-inner * kGateLog2E)) * up;
}

// Returns the factor by which soft_cap_of() multiplies a value before it takes the power of two.
constexpr float soft_cap_slope(float scale, float cap) { return 2.0f * scale / cap * kGateLog2E; }

// cap * tanh(scale * x / cap)
template <class Math>
PAGODA_GATE float soft_cap_of(float x, float slope, float cap) {
  const float t = x * slope;
  const float e = Math::exp2(t > kCapPowerMax ? kCapPowerMax : t);
  return (e - 1.0f) / (e + 1.0f) * cap;
}

}  // namespace pagoda::kernels::cuda
