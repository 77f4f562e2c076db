// What the group kernels must know of a packed format, known when they are compiled.
#pragma once

#include "kernels/tiles/ints.h"
#include "kernels/tiles/packed_weight.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

using tiles::Codes;
using tiles::kLineBytes;
using tiles::kTileColumns;
using tiles::kTileRows;
using tiles::PackedFormat;
using tiles::PackedTile;
using tiles::PackedWeight;

// weight = code * scale + minimum, for 16 outputs
struct GroupFactors {
  F32x16 scale;
  F32x16 minimum;
};

template <Codes kCodes, bool kHalfScales, bool kMinima, bool kScaleEach16 = false>
struct GroupFormat {
  static constexpr bool kNibbles = kCodes == Codes::kNibbles;
  static constexpr int kGroups = kScaleEach16 ? 2 : 1;  // in 32 columns

  [[gnu::always_inline]] static F32x16 read(const std::byte* from, int group) {
    if constexpr (kHalfScales) {
      return load_fp16(reinterpret_cast<const std::uint16_t*>(from) + kLanes * group);
    } else {
      return load(reinterpret_cast<const float*>(from) + kLanes * group);
    }
  }
  [[gnu::always_inline]] static GroupFactors factors(const PackedFormat& format, PackedTile tile,
                                                     int group) {
    const F32x16 scale = read(tile.scales, group);
    if constexpr (kMinima) return {scale, read(tile.scales + format.scale_bytes(), group)};
    return {scale, broadcast(format.lowest) * scale};
  }
};

// Calls use(GroupFormat) for the format's own; bf16 has no groups.
template <class Use>
[[gnu::always_inline]] inline void with_group_format(const PackedFormat& format, Use use) {
  if (format.codes == Codes::kNibbles) {
    if (format.half_scales) {
      return format.minima ? use(GroupFormat<Codes::kNibbles, true, true>())
                           : use(GroupFormat<Codes::kNibbles, true, false>());
    }
    return use(GroupFormat<Codes::kNibbles, false, true>());
  }
  if (format.half_scales) {
    return format.minima ? use(GroupFormat<Codes::kBytes, true, true>())
                         : use(GroupFormat<Codes::kBytes, true, false>());
  }
  if (format.scale_each_16) return use(GroupFormat<Codes::kBytes, false, false, true>());
  return format.minima ? use(GroupFormat<Codes::kBytes, false, true>())
                       : use(GroupFormat<Codes::kBytes, false, false>());
}

// Some rows of x that are multiplied together.
struct DigitRows {
  const std::byte* digits;  // of the first row
  const std::byte* scales;
  std::size_t stride;  // bytes from row to row

  DigitRows(const Matmul& job, std::size_t first_row)
      : stride(operand_stride(Arithmetic::kPairs, job.weight.columns)) {
    const std::byte* const row = job.x + first_row * stride;
    digits = row + digits_offset(job.weight.columns);
    scales = row + scales_offset(job.weight.columns);
  }
  // The same rows, which the compiler must take for others: digits are to be read again where they
  // are used, not kept in registers that sums need.
  [[gnu::always_inline]] DigitRows read_again() const {
    DigitRows rows = *this;
    asm("" : "+r"(rows.digits));
    return rows;
  }
  [[gnu::always_inline]] const GroupDigits& digits_of(std::size_t row, std::size_t step) const {
    return reinterpret_cast<const GroupDigits*>(digits + row * stride)[step];
  }
  [[gnu::always_inline]] const GroupScales& scales_of(std::size_t row, std::size_t step) const {
    return reinterpret_cast<const GroupScales*>(scales + row * stride)[step];
  }
};

// The sum so far of 16 outputs of one row, and one more group.
template <class Format>
[[gnu::always_inline]] inline F32x16 add_group(const F32x16& sum, const F32x16& products,
                                               const GroupFactors& weights, const GroupScales& x,
                                               int group) {
  const float x_sum = Format::kGroups == 1 ? x.sum : x.half_sums[group];
  return fma(weights.minimum, broadcast(x_sum),
             fma(products, weights.scale * broadcast(x.scale), sum));
}

// The outputs of one row from a tile of rows of the weight.
[[gnu::always_inline]] inline void put_sum(const Matmul& job, std::size_t row, std::size_t row_tile,
                                           const F32x16& sum) {
  const std::size_t first = row_tile * kTileRows;
  float* const y = job.y + row * job.y_stride + first;
  if (job.weight.rows - first >= kTileRows) {
    store(y, job.accumulate ? load(y) + sum : sum);
    return;
  }
  const std::size_t bytes = (job.weight.rows - first) * sizeof(float);
  alignas(64) float all[kTileRows] = {};
  if (job.accumulate) __builtin_memcpy(all, y, bytes);
  store(all, job.accumulate ? load(all) + sum : sum);
  __builtin_memcpy(y, all, bytes);
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET
