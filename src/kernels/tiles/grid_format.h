// What the grid kernels must know of a packed format, known when they are compiled.
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
using tiles::Steps;

template <Codes kCodesOfFormat, Steps kStepsOfFormat, bool kWideOfFormat = false>
struct GridFormat {
  static constexpr bool kNibbles = kCodesOfFormat == Codes::kNibbles;
  static constexpr bool kOffsets = kStepsOfFormat == Steps::kWithOffsets;
  static constexpr bool kEach16 = kStepsOfFormat == Steps::kEach16;
  static constexpr bool kWide = kWideOfFormat;
  static constexpr std::size_t kDigits = kWide ? 3 : 2;

  // Of columns 0-15 or 16-31.
  [[gnu::always_inline]] static Words16 steps(PackedTile tile, int half) {
    if constexpr (kEach16) {
      return half == 0 ? load_first_words(tile.steps) : load_second_words(tile.steps);
    }
    if constexpr (kOffsets) return load_first_words(tile.steps);
    return load_words(tile.steps);
  }
  [[gnu::always_inline]] static Words16 offsets(const PackedFormat& format, PackedTile tile,
                                                const Words16& steps) {
    if constexpr (kOffsets) return load_second_words(tile.steps);
    return times(steps, static_cast<std::int16_t>(format.lowest));
  }
};

// Calls use(GridFormat) for the format's own; bf16 is on no grid.
template <class Use>
[[gnu::always_inline]] inline void with_grid_format(const PackedFormat& format, Use use) {
  if (format.codes == Codes::kNibbles) {
    return format.steps == Steps::kWithOffsets
               ? use(GridFormat<Codes::kNibbles, Steps::kWithOffsets>())
               : use(GridFormat<Codes::kNibbles, Steps::kAlone>());
  }
  if (format.wide) return use(GridFormat<Codes::kBytes, Steps::kAlone, true>());
  switch (format.steps) {
    case Steps::kWithOffsets:
      return use(GridFormat<Codes::kBytes, Steps::kWithOffsets>());
    case Steps::kEach16:
      return use(GridFormat<Codes::kBytes, Steps::kEach16>());
    case Steps::kAlone:
      return use(GridFormat<Codes::kBytes, Steps::kAlone>());
  }
}

// Some rows of one block of x that are multiplied together.
struct DigitRows {
  const std::byte* digits;  // of the first row
  const std::byte* sums;
  const std::byte* scales;
  std::size_t sums_stride;

  DigitRows(const Matmul& job, std::size_t first_row) {
    const OperandLayout layout(job.weight.columns);
    digits = job.x + layout.digits(first_row);
    sums = job.x + layout.sums(first_row);
    scales = job.x + layout.scale(first_row);
    sums_stride = layout.sums_stride();
  }
  // High digits of a group of 32 columns; the low ones stand kStep behind them.
  [[gnu::always_inline]] const std::int8_t* digits_of(std::size_t row, std::size_t group) const {
    return reinterpret_cast<const std::int8_t*>(digits + row * sizeof(StepDigits) +
                                                group / 2 * OperandLayout::kDigitsStride +
                                                group % 2 * kGroup);
  }
  [[gnu::always_inline]] const GroupSums& sums_of(std::size_t row, std::size_t group) const {
    return reinterpret_cast<const GroupSums*>(sums + row * sums_stride)[group];
  }
  [[gnu::always_inline]] float scale_of(std::size_t row) const {
    return reinterpret_cast<const float*>(scales)[row];
  }
};

// The outputs of one row from a tile of rows of the weight, those that exist: sums as floats, to be
// scaled.
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

}  // namespace pagoda::kernels::PAGODA_TILE_SET
