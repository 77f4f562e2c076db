// Norm, activation and the writing of keys and values.
#include <cmath>

#include "kernels/fp32/f32x8.h"
#include "kernels/fp32/kernels.h"
#include "kernels/ref/finite.h"
#include "kernels/ref/rows.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels::fp32 {
namespace {

// Elements side by side go eight at a time where that pays; all others one by one.
void narrow_row(kv::memory::Element element, const float* values, std::size_t count,
                kv::memory::Row row) {
  if (element == kv::memory::Element::kF16 && row.contiguous()) {
    for (; count >= kLanes; count -= kLanes, values += kLanes, row.data += 2 * kLanes) {
      store_fp16(row.data, load(values));
    }
  }
  kv::memory::encode_row(element, values, count, row);
}

}  // namespace

void rms_norm(const float* x, const float* weight, float epsilon, std::size_t width, float* y) {
  F32x8 lanes = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const F32x8 value = load(x + i);
    lanes = fma(value, value, lanes);
  }
  const float squares = fold_with_tail(lanes, x + i, x + i, width - i);
  const float mean = squares / static_cast<float>(width);
  const float factor = 1.0f / std::sqrt(mean + epsilon);
  for (i = 0; i + kLanes <= width; i += kLanes) {
    store(y + i, load(x + i) * broadcast(factor) * load(weight + i));
  }
  for (; i < width; ++i) y[i] = x[i] * factor * weight[i];
}

void swiglu(float* gate, const float* up, std::size_t count) {
  const F32x8 one = broadcast(1.0f);
  const F32x8 zero = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x8 g = load(gate + i);
    store(gate + i, g / (one + exp_fixed(zero - g)) * load(up + i));
  }
  for (; i < count; ++i) gate[i] = gate[i] / (1.0f + kernels::exp_fixed(-gate[i])) * up[i];
}

void geglu(float* gate, const float* up, std::size_t count) {
  const F32x8 one = broadcast(1.0f);
  const F32x8 zero = broadcast(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x8 g = load(gate + i);
    const F32x8 inner = g * fma(g * g, broadcast(kGeluCubic), broadcast(kGeluLinear));
    store(gate + i, g / (one + exp_fixed(zero - inner)) * load(up + i));
  }
  ref::geglu(gate + i, up + i, count - i);
}

void clamped_swiglu(float* gate, const float* up, std::size_t count) {
  const F32x8 one = broadcast(1.0f);
  const F32x8 zero = broadcast(0.0f);
  const F32x8 slope = broadcast(kClampedGateSlope);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x8 g = clamp_above(load(gate + i), kClampedGateMax);
    const F32x8 u = max(broadcast(-kClampedGateMax), clamp_above(load(up + i), kClampedGateMax));
    store(gate + i, g / (one + exp_fixed(zero - g * slope)) * (u + one));
  }
  ref::clamped_swiglu(gate + i, up + i, count - i);
}

void soft_cap(float* x, std::size_t count, float scale, float cap) {
  const F32x8 one = broadcast(1.0f);
  const F32x8 slope = broadcast(2.0f * scale / cap);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const F32x8 e = exp_fixed(load(x + i) * slope);
    store(x + i, (e - one) / (e + one) * broadcast(cap));
  }
  ref::soft_cap(x + i, count - i, scale, cap);
}

bool store_kv(const kv::memory::SequenceView& view, std::uint64_t position, const float* keys,
              const float* values) {
  const kv::memory::PageLayout& layout = view.layer.layout;
  return ref::store_finite_heads(
      Numerics::kFp32, view, position, keys, values,
      [&](std::uint32_t head, const float* key, const float* value) {
        narrow_row(layout.elements.keys, key, layout.key_dim, view.key_row(head, position));
        if (layout.values_in_keys) return;
        narrow_row(layout.elements.values, value, layout.value_dim, view.value_row(head, position));
      });
}

}  // namespace pagoda::kernels::fp32
