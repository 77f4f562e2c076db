// Rows of floats into activations by NEON: bf16, and the limbs of integers with their sums and
// their scale.
#include "kernels/activations.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/simd.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

// Compares magnitudes as integers: they have the same order, and NaN is above all.
float largest_of(const float* x, std::size_t columns) {
  const uint32x4_t magnitude = vdupq_n_u32(0x7FFFFFFF);
  uint32x4_t largest[4] = {};
  std::size_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    PAGODA_ISA_UNROLL for (std::size_t part = 0; part < 4; ++part) {
      const uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + i + 4 * part));
      largest[part] = vmaxq_u32(largest[part], vandq_u32(bits, magnitude));
    }
  }
  std::uint32_t most =
      vmaxvq_u32(vmaxq_u32(vmaxq_u32(largest[0], largest[1]), vmaxq_u32(largest[2], largest[3])));
  for (; i < columns; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x[i]) & 0x7FFFFFFF;
    most = bits > most ? bits : most;
  }
  return __builtin_bit_cast(float, most);
}

// 16 integers of 16 bits as their high and low limbs; the sums of either.
struct Limbs16 {
  int8x16_t high;
  int8x16_t low;
  std::int16_t high_sum;
  std::int16_t low_sum;
};
[[gnu::always_inline]] inline Limbs16 limbs_of(const F32x16& x, float32x4_t inverse) {
  const auto words = [&](float32x4_t a, float32x4_t b) {
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(vmulq_f32(a, inverse))),
                        vmovn_s32(vcvtnq_s32_f32(vmulq_f32(b, inverse))));
  };
  const int16x8_t first = words(x.v[0], x.v[1]);
  const int16x8_t second = words(x.v[2], x.v[3]);
  // (n + 128) >> 8 is the high byte of n, one more where the low byte is negative.
  const int8x16_t high =
      vcombine_s8(vrshrn_n_s16(first, kLimbBits), vrshrn_n_s16(second, kLimbBits));
  const int8x16_t low = vcombine_s8(vmovn_s16(first), vmovn_s16(second));
  return {high, low, vaddlvq_s8(high), vaddlvq_s8(low)};
}

// 64 columns.
[[gnu::always_inline]] inline void put_k_block(const float* x, float32x4_t inverse,
                                               Int8Limbs& limbs, GroupSums* sums,
                                               std::size_t groups) {
  PAGODA_ISA_UNROLL for (std::size_t part = 0; part < 4; ++part) {
    const Limbs16 of = limbs_of(load(x + 16 * part), inverse);
    vst1q_s8(limbs.high + 16 * part, of.high);
    vst1q_s8(limbs.low + 16 * part, of.low);
    if (part / 2 >= groups) continue;
    sums[part / 2].high[part % 2] = of.high_sum;
    sums[part / 2].low[part % 2] = of.low_sum;
  }
}

}  // namespace

void pack_activations(const float* x, std::size_t columns, std::byte* activations,
                      std::size_t row) {
  constexpr float kSmallest = 0x1p-100f;
  const FlushSubnormals flush;
  const float largest = largest_of(x, columns);
  const bool usable = largest >= kSmallest && largest < __builtin_inff();
  const float scale = usable                ? largest / static_cast<float>(kLimbsMax)
                      : largest < kSmallest ? 0.0f
                                            : __builtin_nanf("");
  const float32x4_t inverse = vdupq_n_f32(usable ? static_cast<float>(kLimbsMax) / largest : 0.0f);
  const ActivationLayout layout(columns);
  auto* const halves = reinterpret_cast<std::uint16_t*>(activations + layout.halves(row));
  std::byte* const limbs = activations + layout.limbs(row);
  auto* const sums = reinterpret_cast<GroupSums*>(activations + layout.sums(row));
  for (std::size_t k_block = 0; k_block < k_blocks_of(columns); ++k_block) {
    const std::size_t rest = columns - k_block * kBlockK;
    const std::size_t groups = rest > kGroupColumns ? 2 : 1;
    alignas(64) float filled[kBlockK] = {};
    const float* from = x + k_block * kBlockK;
    if (rest < kBlockK) {
      __builtin_memcpy(filled, from, rest * sizeof(float));
      from = filled;
    }
    store_bf16(halves + k_block * kBlockK, load(from), load(from + kLanes));
    if (groups == 2) {
      store_bf16(halves + k_block * kBlockK + kGroupColumns, load(from + 2 * kLanes),
                 load(from + 3 * kLanes));
    }
    // A row that is not finite has inverse 0: 0 times infinity or NaN is NaN, which converts to 0.
    put_k_block(from, inverse,
                *reinterpret_cast<Int8Limbs*>(limbs + k_block * ActivationLayout::kLimbsStride),
                sums + 2 * k_block, groups);
  }
  __builtin_memcpy(activations + layout.scale(row), &scale, sizeof(scale));
}

}  // namespace pagoda::kernels::PAGODA_ISA
