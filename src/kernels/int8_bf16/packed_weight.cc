#include "kernels/int8_bf16/packed_weight.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/integer_gemm.h"

namespace pagoda::kernels::int8_bf16 {
namespace {

using ref::IntegerGroup;
using ref::QuantBlock;

std::size_t tiles_of(std::size_t count, std::size_t size) { return (count + size - 1) / size; }

// One tile in the making: places for what PackedTile reads.
struct OpenTile {
  PackedFormat format;
  std::byte* codes;
  std::byte* scales;

  void put_word(std::size_t place, std::int32_t value) const {
    const auto word = static_cast<std::int16_t>(value);
    std::memcpy(scales + sizeof(word) * place, &word, sizeof(word));
  }

  // The grid of columns 0-15 and of 16-31.
  void put_scales(std::size_t row, const IntegerGroup* halves) const {
    if (format.scales == GroupScales::kScaleOnly) return put_word(row, halves[0].scale);
    put_word(2 * row, halves[0].scale);
    put_word(2 * row + 1,
             format.scales == GroupScales::kPer16 ? halves[1].scale : halves[0].zero_point);
  }

  void put_codes(std::size_t row, const QuantBlock& group) const {
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
        k / kTileColumns * packed.group_bytes + 2 * (row * kTileColumns + k % kTileColumns);
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
      start + kTilesTogether * format.code_bytes() + place * format.scales_bytes();
  std::vector<float> values(format.type == QuantType::kBf16 ? weight.columns : 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::byte* const source = weight.data + (first + row) * weight.row_bytes;
    if (format.type == QuantType::kBf16) {
      ref::dequantise_row(weight.type, source, values.data(), weight.columns);
      put_floats(packed, values, row, codes);
      continue;
    }
    const ref::IntegerRow grid = ref::integer_row(weight, first + row);
    for (std::size_t group = 0; group < packed.groups; ++group) {
      const OpenTile tile = {format, codes + group * packed.group_bytes,
                             scales + group * packed.group_bytes};
      tile.put_codes(row, grid.codes[group]);
      tile.put_scales(row, grid.groups.data() + 2 * group);
    }
    std::memcpy(target + packed.tiles_bytes + (first + row) * sizeof(float), &grid.scale,
                sizeof(float));
  }
}

}  // namespace

PackedFormat packed_format(const WeightMatrix& weight) {
  if (!ref::multiplied_as_integers(weight)) return {};
  const ref::QuantTraits& traits = *ref::quant_traits(weight.type);
  return {.type = traits.nibbles ? QuantType::kNibbles : QuantType::kBytes,
          .scales = traits.minima         ? GroupScales::kWithZeroPoints
                    : traits.scale_per_16 ? GroupScales::kPer16
                                          : GroupScales::kScaleOnly,
          .lowest = traits.lowest,
          .wide = traits.wide};
}

PackedWeight::PackedWeight(const WeightMatrix& weight)
    : format(packed_format(weight)),
      groups(tiles_of(weight.columns, kTileColumns)),
      group_bytes(kTilesTogether * format.tile_bytes()),
      tiles_bytes(tiles_of(weight.rows, kTilesTogether * kTileRows) * groups * group_bytes),
      data(weight.packed) {}

std::size_t packed_bytes(const WeightMatrix& weight) {
  const PackedWeight packed(weight);
  if (packed.format.type == QuantType::kBf16) return packed.tiles_bytes;
  constexpr std::size_t kRowsTogether = kTilesTogether * kTileRows;
  return packed.tiles_bytes + tiles_of(weight.rows, kRowsTogether) * kRowsTogether * sizeof(float);
}

void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed) {
  const PackedWeight layout(weight);
  for (std::size_t row = begin; row < end; row += kTileRows) {
    pack_row_tile(weight, layout, row / kTileRows, packed);
  }
}

}  // namespace pagoda::kernels::int8_bf16
