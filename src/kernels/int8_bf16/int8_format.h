// The properties of a packed weight format as compile-time constants, for the integer GEMM.
#pragma once

#include "kernels/int8_bf16/ints.h"
#include "kernels/int8_bf16/packed_weight.h"

namespace pagoda::kernels::PAGODA_ISA {

using int8_bf16::GroupScales;
using int8_bf16::kLineBytes;
using int8_bf16::kTileColumns;
using int8_bf16::kTileRows;
using int8_bf16::PackedFormat;
using int8_bf16::PackedTile;
using int8_bf16::PackedWeight;
using int8_bf16::QuantType;

template <QuantType kTypeOfFormat, GroupScales kScalesOfFormat, bool kWideOfFormat = false>
struct Int8Format {
  static constexpr bool kNibbles = kTypeOfFormat == QuantType::kNibbles;
  static constexpr bool kZeroPoints = kScalesOfFormat == GroupScales::kWithZeroPoints;
  static constexpr bool kPer16 = kScalesOfFormat == GroupScales::kPer16;
  static constexpr bool kWide = kWideOfFormat;
  static constexpr std::size_t kLimbs = kWide ? 3 : 2;

  // The group scales of columns 0-15 (half 0) or 16-31 (half 1).
  [[gnu::always_inline]] static Words16 scales(PackedTile tile, int half) {
    if constexpr (kPer16) {
      return half == 0 ? load_first_words(tile.scales) : load_second_words(tile.scales);
    }
    if constexpr (kZeroPoints) return load_first_words(tile.scales);
    return load_words(tile.scales);
  }
  [[gnu::always_inline]] static Words16 zero_points(const PackedFormat& format, PackedTile tile,
                                                    const Words16& scales) {
    if constexpr (kZeroPoints) return load_second_words(tile.scales);
    return times(scales, static_cast<std::int16_t>(format.lowest));
  }
};

// Calls use(Int8Format) for the format's own; bf16 weights are no integers.
template <class Use>
[[gnu::always_inline]] inline void with_int8_format(const PackedFormat& format, Use use) {
  if (format.type == QuantType::kNibbles) {
    return format.scales == GroupScales::kWithZeroPoints
               ? use(Int8Format<QuantType::kNibbles, GroupScales::kWithZeroPoints>())
               : use(Int8Format<QuantType::kNibbles, GroupScales::kScaleOnly>());
  }
  if (format.wide) return use(Int8Format<QuantType::kBytes, GroupScales::kScaleOnly, true>());
  switch (format.scales) {
    case GroupScales::kWithZeroPoints:
      return use(Int8Format<QuantType::kBytes, GroupScales::kWithZeroPoints>());
    case GroupScales::kPer16:
      return use(Int8Format<QuantType::kBytes, GroupScales::kPer16>());
    case GroupScales::kScaleOnly:
      return use(Int8Format<QuantType::kBytes, GroupScales::kScaleOnly>());
  }
}

// Some rows of one block of x that are multiplied together.
struct LimbRows {
  const std::byte* limbs;  // of the first row
  const std::byte* sums;
  const std::byte* scales;
  std::size_t sums_stride;

  LimbRows(const Matmul& job, std::size_t first_row) {
    const ActivationLayout layout(job.weight.columns);
    limbs = job.x + layout.limbs(first_row);
    sums = job.x + layout.sums(first_row);
    scales = job.x + layout.scale(first_row);
    sums_stride = layout.sums_stride();
  }
  // High limbs of a group of 32 columns; the low ones stand kBlockK behind them.
  [[gnu::always_inline]] const std::int8_t* limbs_of(std::size_t row, std::size_t group) const {
    return reinterpret_cast<const std::int8_t*>(limbs + row * sizeof(Int8Limbs) +
                                                group / 2 * ActivationLayout::kLimbsStride +
                                                group % 2 * kGroupColumns);
  }
  [[gnu::always_inline]] const GroupSums& sums_of(std::size_t row, std::size_t group) const {
    return reinterpret_cast<const GroupSums*>(sums + row * sums_stride)[group];
  }
  [[gnu::always_inline]] float scale_of(std::size_t row) const {
    return reinterpret_cast<const float*>(scales)[row];
  }
};

// The epilogue of an int8 GEMM: the outputs of one row from a tile of rows of the weight, those
// that exist. The sums are floats; they are scaled, and stored or added to y.
[[gnu::always_inline]] inline void put_sums(const Matmul& job, const PackedWeight& weight,
                                            std::size_t row, float x_scale, std::size_t row_tile,
                                            const F32x16& sums) {
  const std::size_t first = row_tile * kTileRows;
  if (first >= job.weight.rows) return;
  const F32x16 products = sums * load(weight.row_scales(row_tile)) * broadcast(x_scale);
  float* const y = job.y + row * job.y_stride + first;
  if (job.weight.rows - first >= kTileRows) {
    store(y, job.accumulate ? load(y) + products : products);
    return;
  }
  const std::size_t bytes = (job.weight.rows - first) * sizeof(float);
  alignas(64) float all[kTileRows] = {};
  if (job.accumulate) __builtin_memcpy(all, y, bytes);
  store(all, job.accumulate ? load(all) + products : products);
  __builtin_memcpy(y, all, bytes);
}

}  // namespace pagoda::kernels::PAGODA_ISA
