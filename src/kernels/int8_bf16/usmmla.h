// Exact integer GEMM over weights packed as panels (usmmla_panels.h), by USMMLA: two outputs and
// two rows of limbs, eight columns at a time.
//
// A group's sum of codes times integers of x fits into 32 bits; multiplied with its scale it is
// added up in 64. Every format goes the same way, with s the scale and z the zero point of a group:
//
//   sum over k of (s * u[k] + z) * n[k]  =  s * t + z * N,   N = sum of n[k],
//
// where zero points are lowest * scale: s * (t + lowest * N).
#pragma once

#include <arm_neon.h>

#include "kernels/int8_bf16/simd.h"
#include "kernels/int8_bf16/usmmla_panels.h"

namespace pagoda::kernels::PAGODA_ISA {

using int8_bf16::GroupScales;
using int8_bf16::kTileRows;
using int8_bf16::PackedFormat;
using int8_bf16::QuantType;
using int8_bf16::UsmmlaPanels;

inline constexpr std::size_t kPanelOutputs = 4;  // outputs
inline constexpr std::size_t kK8Blocks = 4;      // of 8 columns in a group

// The properties of a weight format as compile-time constants.
template <QuantType kTypeOfFormat, GroupScales kScalesOfFormat>
struct UsmmlaFormat {
  static constexpr bool kNibbles = kTypeOfFormat == QuantType::kNibbles;
  static constexpr bool kZeroPoints = kScalesOfFormat == GroupScales::kWithZeroPoints;
  static constexpr bool kPer16 = kScalesOfFormat == GroupScales::kPer16;
  static constexpr std::size_t kCodeBytes = kNibbles ? 256 : 512;  // of 16 rows, 32 columns
  static constexpr std::size_t kTileBytes =
      kCodeBytes + kTileRows * (kScalesOfFormat == GroupScales::kScaleOnly ? 2 : 4);
};

template <class Use>
inline void with_usmmla_format(const PackedFormat& format, Use use) {
  const bool nibbles = format.type == QuantType::kNibbles;
  switch (format.scales) {
    case GroupScales::kWithZeroPoints:
      return nibbles ? use(UsmmlaFormat<QuantType::kNibbles, GroupScales::kWithZeroPoints>())
                     : use(UsmmlaFormat<QuantType::kBytes, GroupScales::kWithZeroPoints>());
    case GroupScales::kPer16:
      return use(UsmmlaFormat<QuantType::kBytes, GroupScales::kPer16>());
    case GroupScales::kScaleOnly:
      return nibbles ? use(UsmmlaFormat<QuantType::kNibbles, GroupScales::kScaleOnly>())
                     : use(UsmmlaFormat<QuantType::kBytes, GroupScales::kScaleOnly>());
  }
}

// The limbs of one row of x, and sums of its integers.
class LimbRow {
 public:
  LimbRow(const std::byte* x, const ActivationLayout& layout, std::size_t row)
      : limbs_(reinterpret_cast<const std::int8_t*>(x + layout.limbs(row))),
        sums_(reinterpret_cast<const GroupSums*>(x + layout.sums(row))),
        scale_(*reinterpret_cast<const float*>(x + layout.scale(row))) {}

  // High limbs of 32 columns; the low ones stand kBlockK behind them.
  const std::int8_t* limbs(std::size_t group) const {
    return limbs_ + group / 2 * ActivationLayout::kLimbsStride + group % 2 * kGroupColumns;
  }
  const GroupSums& sums(std::size_t group) const { return sums_[group]; }
  float scale() const { return scale_; }

 private:
  const std::int8_t* limbs_;
  const GroupSums* sums_;
  float scale_;
};

// Zeros that sums begin with.
[[gnu::always_inline]] inline int32x4_t no_sums() { return vreinterpretq_s32_f32(fresh_zeros()); }

// The same seeds, which the compiler must take for others: loaded again they cost nothing, copied
// they would.
[[gnu::always_inline]] inline int32x4_t load_again(const std::int32_t* seeds) {
  asm("" : "+r"(seeds));
  return vld1q_s32(seeds);
}

// The first or second k8 of two rows of limbs, side by side.
[[gnu::always_inline]] inline int8x16_t first_k8(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
[[gnu::always_inline]] inline int8x16_t second_k8(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

// ref::float_of_sum of four sums.
[[gnu::always_inline]] inline float32x4_t floats_of(int64x2_t first, int64x2_t second) {
  const int32x4_t high = vcombine_s32(vshrn_n_s64(first, 24), vshrn_n_s64(second, 24));
  const int32x4_t low =
      vandq_s32(vcombine_s32(vmovn_s64(first), vmovn_s64(second)), vdupq_n_s32(0xFFFFFF));
  return vfmaq_f32(vcvtq_f32_s32(low), vcvtq_f32_s32(high), vdupq_n_f32(0x1p24f));
}

// The epilogue of an int8 GEMM: four outputs of one row, those that exist. The sums are floats;
// they are scaled, and stored or added to y.
[[gnu::always_inline]] inline void put_panel(const Matmul& job, std::size_t row, float x_scale,
                                             const float* row_scales, std::size_t first,
                                             float32x4_t sums) {
  if (first >= job.weight.rows) return;
  const float32x4_t products = vmulq_n_f32(vmulq_f32(sums, vld1q_f32(row_scales)), x_scale);
  float* const y = job.y + row * job.y_stride + first;
  if (job.weight.rows - first >= kPanelOutputs) {
    vst1q_f32(y, job.accumulate ? vaddq_f32(vld1q_f32(y), products) : products);
    return;
  }
  float all[kPanelOutputs];
  vst1q_f32(all, products);
  for (std::size_t i = 0; i < job.weight.rows - first; ++i) {
    y[i] = job.accumulate ? y[i] + all[i] : all[i];
  }
}

// Row tiles [begin, end) of the weight. Few rows, up to kFewRows, are cheaper one by one.
inline constexpr std::size_t kFewRows = 3;
void multiply_few_rows(const Matmul& job, const UsmmlaPanels& weight, std::size_t begin,
                       std::size_t end, std::byte* scratch);
void multiply_many_rows(const Matmul& job, const UsmmlaPanels& weight, std::size_t begin,
                        std::size_t end, std::byte* scratch);
// Bytes they need, aligned to 64.
std::size_t few_rows_scratch(std::size_t columns);
std::size_t many_rows_scratch(std::size_t columns);

}  // namespace pagoda::kernels::PAGODA_ISA
