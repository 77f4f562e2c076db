// Weights arranged for tiles, once, at load.
//
// A tile is 16 rows (outputs) of 32 columns: one group of an integer dot product, one block of an
// even-odd reduction. Four tiles of rows that follow each other are walked together and stand so,
// group after group: a matrix is read from its first byte to its last, as memory likes it.
//
//   packed = rows 0-63:    group 0: codes of the four tiles, then their scales
//                          group 1: …
//            rows 64-127:  …
//            [rows] fp32, the scales of rows that are on a grid
//
//   codes of a tile   nibbles  [4] lines of [16 rows][4] bytes: byte (n, i) of line j holds column
//                              4j + i of row n in its low bits and column 16 + 4j + i in its high
//                              ones
//                     bytes    [8] lines of [16 rows][4]: columns 4j to 4j + 3
//                     bf16     [16][32] bf16: the weights themselves, no scales
//   scales of a tile  [16] words, or [16] pairs of words: scale and zero point, or the scales of
//                     columns 0-15 and 16-31
//
// A line is what one instruction multiplies with four columns of x: 16 outputs, four terms each.
//
// Rows and columns beyond the matrix are zero; the last 64 rows are filled up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace pagoda::kernels::int8_bf16 {

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileColumns = 32;
static_assert(kMatmulPanel % kTileRows == 0 && kTileColumns == kGroupColumns);

inline constexpr std::size_t kTilesTogether = 4;
inline constexpr std::size_t kLineBytes = 64;

enum class QuantType : std::uint8_t { kNibbles, kBytes, kBf16 };
enum class GroupScales : std::uint8_t { kScaleOnly, kWithZeroPoints, kPer16 };

struct PackedFormat {
  QuantType type = QuantType::kBf16;
  GroupScales scales = GroupScales::kScaleOnly;
  int lowest = 0;     // zero_point = lowest * scale, unless zero_points are stored
  bool wide = false;  // weights are integers of three limbs, not two

  constexpr std::size_t code_bytes() const {
    return type == QuantType::kNibbles ? 256 : type == QuantType::kBytes ? 512 : 1024;
  }
  constexpr std::size_t scales_bytes() const {
    if (type == QuantType::kBf16) return 0;
    return kTileRows * (scales == GroupScales::kScaleOnly ? 2 : 4);
  }
  constexpr std::size_t tile_bytes() const { return code_bytes() + scales_bytes(); }
};

PackedFormat packed_format(const WeightMatrix& weight);

struct PackedTile {
  const std::byte* codes;
  const std::byte* scales;
};

// One packed matrix.
struct PackedWeight {
  PackedFormat format;
  std::size_t groups = 0;       // of 32 columns
  std::size_t group_bytes = 0;  // of four tiles
  std::size_t tiles_bytes = 0;  // of all tiles
  const std::byte* data = nullptr;

  explicit PackedWeight(const WeightMatrix& weight);

  // Always inline: this header is compiled for several instruction sets, and no two may share code.

  // The offset of one group of the four row tiles that `row_tile` stands together with.
  [[gnu::always_inline]] std::size_t offset_of(std::size_t row_tile, std::size_t group) const {
    return (row_tile / kTilesTogether * groups + group) * group_bytes;
  }
  // Prefetches the group that is read a few groups from now, of `row_tiles` that stand together;
  // the next rows follow the last group.
  [[gnu::always_inline]] void prefetch(std::size_t row_tile, std::size_t group,
                                       std::size_t row_tiles) const {
    constexpr std::size_t kBytesAhead = 4096;
    const std::byte* const soon = tile(row_tile, group).codes + kBytesAhead;
    const std::size_t bytes = group_bytes * row_tiles / kTilesTogether;
    for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(soon + at);
  }
  // Prefetches a part of the rows that follow: as many bytes with every group as a tile of it has.
  [[gnu::always_inline]] void prefetch_later_rows(std::size_t row_tile, std::size_t group) const {
    const std::size_t share = format.tile_bytes();
    const std::byte* const soon = data + offset_of(row_tile + kTilesTogether, 0) +
                                  (row_tile % kTilesTogether * groups + group) * share;
    for (std::size_t at = 0; at < share; at += kLineBytes) __builtin_prefetch(soon + at, 0, 2);
  }
  [[gnu::always_inline]] PackedTile tile(std::size_t row_tile, std::size_t group) const {
    const std::byte* const start = data + offset_of(row_tile, group);
    const std::size_t place = row_tile % kTilesTogether;
    return {start + place * format.code_bytes(),
            start + kTilesTogether * format.code_bytes() + place * format.scales_bytes()};
  }
  [[gnu::always_inline]] const float* row_scales(std::size_t row_tile) const {
    return reinterpret_cast<const float*>(data + tiles_bytes) + row_tile * kTileRows;
  }
};

std::size_t packed_bytes(const WeightMatrix& weight);
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed);

}  // namespace pagoda::kernels::int8_bf16
