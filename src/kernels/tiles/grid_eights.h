// Grid sums over codes packed in eights (packed_eights.h), by USMMLA: two outputs and two rows of
// digits, eight columns at a time.
//
// A group's sum of codes times integers of x fits into 32 bits; multiplied with its step it is
// added up in 64. Every format goes the same way:
//
//   sum over k of (step * u[k] + offset) * n[k]  =  step * t + offset * N,   N = sum of n[k],
//
// where offsets are lowest * step: step * (t + lowest * N).
#pragma once

#include <arm_neon.h>

#include "kernels/tiles/packed_eights.h"
#include "kernels/tiles/simd.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

using tiles::Codes;
using tiles::kTileRows;
using tiles::PackedEights;
using tiles::PackedFormat;
using tiles::Steps;

inline constexpr std::size_t kQuad = 4;    // outputs
inline constexpr std::size_t kEights = 4;  // of 8 columns in a group

// What the kernels must know of a format when they are compiled.
template <Codes kCodesOfFormat, Steps kStepsOfFormat>
struct EightsFormat {
  static constexpr bool kNibbles = kCodesOfFormat == Codes::kNibbles;
  static constexpr bool kOffsets = kStepsOfFormat == Steps::kWithOffsets;
  static constexpr bool kEach16 = kStepsOfFormat == Steps::kEach16;
  static constexpr std::size_t kCodeBytes = kNibbles ? 256 : 512;  // of 16 rows, 32 columns
  static constexpr std::size_t kTileBytes =
      kCodeBytes + kTileRows * (kStepsOfFormat == Steps::kAlone ? 2 : 4);
};

template <class Use>
inline void with_eights_format(const PackedFormat& format, Use use) {
  const bool nibbles = format.codes == Codes::kNibbles;
  switch (format.steps) {
    case Steps::kWithOffsets:
      return nibbles ? use(EightsFormat<Codes::kNibbles, Steps::kWithOffsets>())
                     : use(EightsFormat<Codes::kBytes, Steps::kWithOffsets>());
    case Steps::kEach16:
      return use(EightsFormat<Codes::kBytes, Steps::kEach16>());
    case Steps::kAlone:
      return nibbles ? use(EightsFormat<Codes::kNibbles, Steps::kAlone>())
                     : use(EightsFormat<Codes::kBytes, Steps::kAlone>());
  }
}

// The digits of one row of x, and sums of its integers.
class DigitRow {
 public:
  DigitRow(const std::byte* x, const OperandLayout& layout, std::size_t row)
      : digits_(reinterpret_cast<const std::int8_t*>(x + layout.digits(row))),
        sums_(reinterpret_cast<const GroupSums*>(x + layout.sums(row))),
        scale_(*reinterpret_cast<const float*>(x + layout.scale(row))) {}

  // High digits of 32 columns; the low ones stand kStep behind them.
  const std::int8_t* digits(std::size_t group) const {
    return digits_ + group / 2 * OperandLayout::kDigitsStride + group % 2 * kGroup;
  }
  const GroupSums& sums(std::size_t group) const { return sums_[group]; }
  float scale() const { return scale_; }

 private:
  const std::int8_t* digits_;
  const GroupSums* sums_;
  float scale_;
};

// What sums begin with.
[[gnu::always_inline]] inline int32x4_t no_sums() { return vreinterpretq_s32_f32(fresh_zeros()); }

// The same seeds, which the compiler must take for others: loaded again they cost nothing, copied
// they would.
[[gnu::always_inline]] inline int32x4_t load_again(const std::int32_t* seeds) {
  asm("" : "+r"(seeds));
  return vld1q_s32(seeds);
}

// The first or second eights of two rows of digits, side by side.
[[gnu::always_inline]] inline int8x16_t first_eights(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
[[gnu::always_inline]] inline int8x16_t second_eights(int8x16_t a, int8x16_t b) {
  return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

// ref::float_of_sum of four sums.
[[gnu::always_inline]] inline float32x4_t floats_of(int64x2_t first, int64x2_t second) {
  const int32x4_t high = vcombine_s32(vshrn_n_s64(first, 24), vshrn_n_s64(second, 24));
  const int32x4_t low =
      vandq_s32(vcombine_s32(vmovn_s64(first), vmovn_s64(second)), vdupq_n_s32(0xFFFFFF));
  return vfmaq_f32(vcvtq_f32_s32(low), vcvtq_f32_s32(high), vdupq_n_f32(0x1p24f));
}

// Four outputs of one row, those that exist: sums as floats, to be scaled.
[[gnu::always_inline]] inline void put_quad(const Matmul& job, std::size_t row, float x_scale,
                                            const float* row_scales, std::size_t first,
                                            float32x4_t sums) {
  if (first >= job.weight.rows) return;
  const float32x4_t products = vmulq_n_f32(vmulq_f32(sums, vld1q_f32(row_scales)), x_scale);
  float* const y = job.y + row * job.y_stride + first;
  if (job.weight.rows - first >= kQuad) {
    vst1q_f32(y, job.accumulate ? vaddq_f32(vld1q_f32(y), products) : products);
    return;
  }
  float all[kQuad];
  vst1q_f32(all, products);
  for (std::size_t i = 0; i < job.weight.rows - first; ++i) {
    y[i] = job.accumulate ? y[i] + all[i] : all[i];
  }
}

// Row tiles [begin, end) of the weight. Few rows, up to kFewRows, are cheaper one by one.
inline constexpr std::size_t kFewRows = 3;
void multiply_few_rows(const Matmul& job, const PackedEights& weight, std::size_t begin,
                       std::size_t end, std::byte* scratch);
void multiply_many_rows(const Matmul& job, const PackedEights& weight, std::size_t begin,
                        std::size_t end, std::byte* scratch);
// Bytes they need, aligned to 64.
std::size_t few_rows_scratch(std::size_t columns);
std::size_t many_rows_scratch(std::size_t columns);

}  // namespace pagoda::kernels::PAGODA_TILE_SET
