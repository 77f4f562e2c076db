#include "kernels/tiles/packed_weight.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/group_codes.h"

namespace pagoda::kernels::tiles {
namespace {

using ref::GroupCodes;

std::size_t tiles_of(std::size_t count, std::size_t size) { return (count + size - 1) / size; }

// One tile in the making: places for what PackedTile reads.
struct OpenTile {
  PackedFormat format;
  std::byte* codes;
  std::byte* scales;

  void put_scale(std::byte* kind, std::size_t place, float value) const {
    if (format.half_scales) {
      const std::uint16_t bits = fp16_from_float(value);
      std::memcpy(kind + 2 * place, &bits, 2);
    } else {
      std::memcpy(kind + 4 * place, &value, 4);
    }
  }

  void put_scales(std::size_t row, const GroupCodes& group) const {
    for (std::size_t i = 0; i < (format.scale_each_16 ? 2u : 1u); ++i) {
      put_scale(scales, i * kTileRows + row, group.scales[i]);
      if (format.minima)
        put_scale(scales + format.scale_bytes(), i * kTileRows + row, group.minima[i]);
    }
  }

  void put(std::size_t row, const GroupCodes& group) const {
    put_scales(row, group);
    const std::size_t lines = format.code_bytes() / kLineBytes;
    for (std::size_t c = 0; c < kTileColumns; ++c) {
      const std::size_t line = c / 4;
      const auto code = static_cast<std::byte>(group.codes[c]);
      codes[line % lines * kLineBytes + 4 * row + c % 4] |= line < lines ? code : code << 4;
    }
  }
};

// A row of floats, rounded, into its place in each tile of a row tile.
void put_floats(const PackedWeight& packed, const std::vector<float>& values, std::size_t row,
                std::byte* codes) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::uint16_t bits = bf16_from_float(values[k]);
    const std::size_t place =
        k / kTileColumns * packed.step_bytes + 2 * (row * kTileColumns + k % kTileColumns);
    std::memcpy(codes + place, &bits, 2);
  }
}

// The rows of one row tile into its tiles, which are zero.
void pack_row_tile(const WeightMatrix& weight, const PackedWeight& packed, std::size_t row_tile,
                   std::byte* target) {
  const PackedFormat& format = packed.format;
  const std::size_t first = row_tile * kTileRows;
  const std::size_t rows = std::min(kTileRows, weight.rows - first);
  const std::size_t place = row_tile % kTilesTogether;
  std::byte* const start = target + packed.offset_of(row_tile, 0);
  std::byte* const codes = start + place * format.code_bytes();
  std::byte* const scales =
      start + kTilesTogether * format.code_bytes() + place * format.all_scale_bytes();
  std::vector<float> values(format.codes == Codes::kBf16 ? weight.columns : 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::byte* const source = weight.data + (first + row) * weight.row_bytes;
    if (format.codes == Codes::kBf16) {
      ref::dequantise_row(weight.type, source, values.data(), weight.columns);
      put_floats(packed, values, row, codes);
      continue;
    }
    for (std::size_t step = 0; step < packed.steps; ++step) {
      const OpenTile tile = {format, codes + step * packed.step_bytes,
                             scales + step * packed.step_bytes};
      tile.put(row, ref::read_codes(weight.type, source, step * kTileColumns));
    }
  }
}

}  // namespace

PackedFormat packed_format(gguf::TensorType type) {
  const ref::CodeTraits* const traits = ref::code_traits(type);
  if (traits == nullptr) return {};
  return {.codes = traits->nibbles ? Codes::kNibbles : Codes::kBytes,
          .lowest = static_cast<float>(traits->lowest),
          .half_scales = traits->half_scales,
          .minima = traits->minima,
          .scale_each_16 = traits->scale_each_16};
}

PackedWeight::PackedWeight(const WeightMatrix& weight)
    : format(packed_format(weight.type)),
      steps(tiles_of(weight.columns, kTileColumns)),
      step_bytes(kTilesTogether * format.tile_bytes()),
      data(weight.packed) {}

std::size_t packed_bytes(const WeightMatrix& weight) {
  const PackedWeight packed(weight);
  return tiles_of(weight.rows, kTilesTogether * kTileRows) * packed.steps * packed.step_bytes;
}

void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed) {
  const PackedWeight layout(weight);
  for (std::size_t row = begin; row < end; row += kTileRows) {
    pack_row_tile(weight, layout, row / kTileRows, packed);
  }
}

}  // namespace pagoda::kernels::tiles
