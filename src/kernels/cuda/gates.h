// How the two halves of a feed-forward layer are joined, and the soft cap, operation by operation:
// the same source on the GPU and in its reference. `Math` has exp2() and fma(); divisions round to
// the nearest. Device code includes this.
#pragma once

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

template <class Math>
PAGODA_GATE float swiglu_of(float gate, float up) {
  return gate / (1.0f + Math::exp2(-gate * kGateLog2E)) * up;
}

template <class Math>
PAGODA_GATE float geglu_of(float gate, float up) {
  const float inner = gate * Math::fma(gate * gate, kGeluCubic, kGeluLinear);
  return gate / (1.0f + Math::exp2(-inner * kGateLog2E)) * up;
}

// Comparisons keep NaN.
template <class Math>
PAGODA_GATE float clamped_swiglu_of(float gate, float up) {
  const float g = gate > kClampedGateMax ? kClampedGateMax : gate;
  const float below = up > kClampedGateMax ? kClampedGateMax : up;
  const float u = below < -kClampedGateMax ? -kClampedGateMax : below;
  return g / (1.0f + Math::exp2(-(g * kClampedGateSlope) * kGateLog2E)) * (u + 1.0f);
}

// What soft_cap_of() multiplies a value by before it takes the power of two.
constexpr float soft_cap_slope(float scale, float cap) { return 2.0f * scale / cap * kGateLog2E; }

// cap * tanh(scale * x / cap)
template <class Math>
PAGODA_GATE float soft_cap_of(float x, float slope, float cap) {
  const float t = x * slope;
  const float e = Math::exp2(t > kCapPowerMax ? kCapPowerMax : t);
  return (e - 1.0f) / (e + 1.0f) * cap;
}

}  // namespace pagoda::kernels::cuda
