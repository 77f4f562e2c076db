// Rotation and activation, sixteen floats at a time.
#include "kernels/ref/rows.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/simd.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

// 16 pairs turned by their angles.
[[gnu::always_inline]] inline void turn(F32x16& first, F32x16& second, const RopeRow& rope,
                                        std::size_t pair) {
  const F32x16 cosines = load(rope.cosines + pair);
  const F32x16 sines = load(rope.sines + pair);
  const F32x16 a = first;
  const F32x16 b = second;
  first = a * cosines - b * sines;
  second = a * sines + b * cosines;
}

}  // namespace

void rope(float* head, const RopeRow& rope) {
  if (rope.pairs % kLanes != 0) return ref::rope(head, rope);
  for (std::size_t pair = 0; pair < rope.pairs; pair += kLanes) {
    F32x16 first;
    F32x16 second;
    if (rope.pairing == RopePairing::kAdjacent) {
      load_pairs(head + 2 * pair, first, second);
      turn(first, second, rope, pair);
      store_pairs(head + 2 * pair, first, second);
    } else {
      first = load(head + pair);
      second = load(head + rope.pairs + pair);
      turn(first, second, rope, pair);
      store(head + pair, first);
      store(head + rope.pairs + pair, second);
    }
  }
}

void swiglu(float* gate, const float* up, std::size_t count) {
  const F32x16 one = broadcast(1.0f);
  const F32x16 zero = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x16 g = load(gate + i);
    store(gate + i, g / (one + exp_anywhere(zero - g)) * load(up + i));
  }
  ref::swiglu(gate + i, up + i, count - i);
}

void geglu(float* gate, const float* up, std::size_t count) {
  const F32x16 one = broadcast(1.0f);
  const F32x16 zero = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x16 g = load(gate + i);
    const F32x16 inner = g * fma(g * g, broadcast(kGeluCubic), broadcast(kGeluLinear));
    store(gate + i, g / (one + exp_anywhere(zero - inner)) * load(up + i));
  }
  ref::geglu(gate + i, up + i, count - i);
}

void clamped_swiglu(float* gate, const float* up, std::size_t count) {
  const F32x16 one = broadcast(1.0f);
  const F32x16 zero = broadcast(0.0f);
  const F32x16 slope = broadcast(kClampedGateSlope);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x16 g = min(broadcast(kClampedGateMax), load(gate + i));
    const F32x16 u =
        max(broadcast(-kClampedGateMax), min(broadcast(kClampedGateMax), load(up + i)));
    store(gate + i, g / (one + exp_anywhere(zero - g * slope)) * (u + one));
  }
  ref::clamped_swiglu(gate + i, up + i, count - i);
}

void soft_cap(float* x, std::size_t count, float scale, float cap) {
  const F32x16 one = broadcast(1.0f);
  const F32x16 slope = broadcast(2.0f * scale / cap);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x16 e = exp_anywhere(load(x + i) * slope);
    store(x + i, (e - one) / (e + one) * broadcast(cap));
  }
  ref::soft_cap(x + i, count - i, scale, cap);
}

}  // namespace pagoda::kernels::PAGODA_ISA
