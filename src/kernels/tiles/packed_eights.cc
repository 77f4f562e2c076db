#include "kernels/tiles/packed_eights.h"

#include <algorithm>
#include <cstring>

#include "kernels/ref/grid.h"

namespace pagoda::kernels::tiles {
namespace {

constexpr std::size_t kQuad = 4;
constexpr std::size_t kOctet = 8;
constexpr std::size_t kEight = 8;
constexpr std::size_t kEights = kTileColumns / kEight;

std::size_t row_tiles_of(const WeightMatrix& weight) {
  return (weight.rows + kTileRows - 1) / kTileRows;
}

// The codes of one row into a tile, which is zero where it was not written.
void put_codes(const PackedFormat& format, std::size_t row, const ref::GroupCodes& group,
               std::byte* tile) {
  const bool nibbles = format.codes == Codes::kNibbles;
  const std::size_t part = row / (nibbles ? kOctet : kQuad);
  const bool high = nibbles && row % kOctet >= kQuad;
  for (std::size_t c = 0; c < kTileColumns; ++c) {
    const std::size_t place =
        ((part * kEights + c / kEight) * kQuad + row % kQuad) * kEight + c % kEight;
    const auto code = static_cast<std::byte>(group.codes[c]);
    tile[place] |= high ? code << 4 : code;
  }
}

void put_steps(const PackedFormat& format, std::size_t row, const ref::GridGroup* halves,
               std::byte* steps) {
  const auto put = [&](std::size_t place, std::int32_t value) {
    const auto word = static_cast<std::int16_t>(value);
    std::memcpy(steps + sizeof(word) * place, &word, sizeof(word));
  };
  put(row, halves[0].step);
  if (format.steps == Steps::kWithOffsets) put(kTileRows + row, halves[0].offset);
  if (format.steps == Steps::kEach16) put(kTileRows + row, halves[1].step);
}

}  // namespace

PackedEights::PackedEights(const WeightMatrix& weight)
    : format(packed_format(weight)),
      groups(groups_of(weight.columns)),
      tiles_bytes(row_tiles_of(weight) * groups * format.tile_bytes()),
      data(weight.packed) {}

std::size_t packed_eights_bytes(const WeightMatrix& weight) {
  if (packed_format(weight).codes == Codes::kBf16) return packed_bytes(weight);
  // A multiple of 64, as row tiles of scales and their codes are.
  return (PackedEights(weight).tiles_bytes + kLineBytes - 1) / kLineBytes * kLineBytes +
         row_tiles_of(weight) * kTileRows * sizeof(float);
}

void pack_eights(const WeightMatrix& weight, std::size_t begin, std::size_t end,
                 std::byte* packed) {
  const PackedEights layout(weight);
  if (layout.format.codes == Codes::kBf16) return pack(weight, begin, end, packed);
  for (std::size_t row = begin; row < std::min(end, weight.rows); ++row) {
    const ref::GridRow grid = ref::grid_of(weight, row);
    for (std::size_t group = 0; group < layout.groups; ++group) {
      std::byte* const tile = packed + layout.offset_of(row / kTileRows, group);
      put_codes(layout.format, row % kTileRows, grid.codes[group], tile);
      put_steps(layout.format, row % kTileRows, grid.groups.data() + 2 * group,
                tile + layout.format.code_bytes());
    }
    std::memcpy(packed + layout.tiles_bytes + row * sizeof(float), &grid.scale, sizeof(float));
  }
}

}  // namespace pagoda::kernels::tiles
