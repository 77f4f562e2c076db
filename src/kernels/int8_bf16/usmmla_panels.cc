#include "kernels/int8_bf16/usmmla_panels.h"

#include <algorithm>
#include <cstring>

#include "kernels/ref/integer_gemm.h"

namespace pagoda::kernels::int8_bf16 {
namespace {

constexpr std::size_t kPanelOutputs = 4;
constexpr std::size_t kPanelPairOutputs = 8;
constexpr std::size_t kK8 = 8;
constexpr std::size_t kK8Blocks = kTileColumns / kK8;

std::size_t row_tiles_of(const WeightMatrix& weight) {
  return (weight.rows + kTileRows - 1) / kTileRows;
}

// The codes of one row into a tile, which is zero where it was not written.
void put_codes(const PackedFormat& format, std::size_t row, const ref::QuantBlock& group,
               std::byte* tile) {
  const bool nibbles = format.type == QuantType::kNibbles;
  const std::size_t part = row / (nibbles ? kPanelPairOutputs : kPanelOutputs);
  const bool high = nibbles && row % kPanelPairOutputs >= kPanelOutputs;
  for (std::size_t c = 0; c < kTileColumns; ++c) {
    const std::size_t place =
        ((part * kK8Blocks + c / kK8) * kPanelOutputs + row % kPanelOutputs) * kK8 + c % kK8;
    const auto code = static_cast<std::byte>(group.codes[c]);
    tile[place] |= high ? code << 4 : code;
  }
}

void put_scales(const PackedFormat& format, std::size_t row, const ref::IntegerGroup* halves,
                std::byte* scales) {
  const auto put = [&](std::size_t place, std::int32_t value) {
    const auto word = static_cast<std::int16_t>(value);
    std::memcpy(scales + sizeof(word) * place, &word, sizeof(word));
  };
  put(row, halves[0].scale);
  if (format.scales == GroupScales::kWithZeroPoints) put(kTileRows + row, halves[0].zero_point);
  if (format.scales == GroupScales::kPer16) put(kTileRows + row, halves[1].scale);
}

}  // namespace

UsmmlaPanels::UsmmlaPanels(const WeightMatrix& weight)
    : format(packed_format(weight)),
      groups(groups_of(weight.columns)),
      tiles_bytes(row_tiles_of(weight) * groups * format.tile_bytes()),
      data(weight.packed) {}

std::size_t usmmla_panels_bytes(const WeightMatrix& weight) {
  if (packed_format(weight).type == QuantType::kBf16) return packed_bytes(weight);
  // A multiple of 64, as row tiles of scales and their codes are.
  return (UsmmlaPanels(weight).tiles_bytes + kLineBytes - 1) / kLineBytes * kLineBytes +
         row_tiles_of(weight) * kTileRows * sizeof(float);
}

void pack_usmmla_panels(const WeightMatrix& weight, std::size_t begin, std::size_t end,
                        std::byte* packed) {
  const UsmmlaPanels layout(weight);
  if (layout.format.type == QuantType::kBf16) return pack(weight, begin, end, packed);
  for (std::size_t row = begin; row < std::min(end, weight.rows); ++row) {
    const ref::IntegerRow grid = ref::integer_row(weight, row);
    for (std::size_t group = 0; group < layout.groups; ++group) {
      std::byte* const tile = packed + layout.offset_of(row / kTileRows, group);
      put_codes(layout.format, row % kTileRows, grid.codes[group], tile);
      put_scales(layout.format, row % kTileRows, grid.groups.data() + 2 * group,
                 tile + layout.format.code_bytes());
    }
    std::memcpy(packed + layout.tiles_bytes + row * sizeof(float), &grid.scale, sizeof(float));
  }
}

}  // namespace pagoda::kernels::int8_bf16
