// Weights arranged for tiles, once, at load.
//
// A tile is 16 rows (outputs) of 32 columns: one group of a group sum, one step of a pair sum. Four
// tiles of rows that follow each other are walked together and stand so, step after step: a matrix
// is read from its first byte to its last, as memory likes it.
//
//   packed = rows 0-63:    step 0: codes of the four tiles, then their scales
//                          step 1: …
//            rows 64-127:  …
//
//   codes of a tile   nibbles  [4] lines of [16 rows][4] bytes: byte (n, i) of line j holds column
//                              4j + i of row n in its low bits and column 16 + 4j + i in its high
//                              ones
//                     bytes    [8] lines of [16 rows][4]: columns 4j to 4j + 3
//                     bf16     [16][32] bf16: the weights themselves, no scales
//   scales of a tile  [16] scales of columns 0-15, and with scale_each_16 [16] of columns 16-31;
//                     then minima likewise, where they are stored; fp16 or fp32
//
// A line is what one instruction multiplies with four columns of x: 16 outputs, four terms each.
//
// Rows and columns beyond the matrix are zero; the last 64 rows are filled up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace pagoda::kernels::tiles {

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileColumns = 32;
static_assert(kMatmulPanel % kTileRows == 0 && kTileColumns == kGroup);

inline constexpr std::size_t kTilesTogether = 4;
inline constexpr std::size_t kLineBytes = 64;

enum class Codes : std::uint8_t { kNibbles, kBytes, kBf16 };

struct PackedFormat {
  Codes codes = Codes::kBf16;
  float lowest = 0;  // minimum = lowest * scale, unless minima are stored
  bool half_scales = false;
  bool minima = false;
  bool scale_each_16 = false;

  constexpr std::size_t code_bytes() const {
    return codes == Codes::kNibbles ? 256 : codes == Codes::kBytes ? 512 : 1024;
  }
  // Of one kind, scales or minima.
  constexpr std::size_t scale_bytes() const {
    if (codes == Codes::kBf16) return 0;
    return kTileRows * (half_scales ? 2 : 4) * (scale_each_16 ? 2 : 1);
  }
  constexpr std::size_t all_scale_bytes() const { return scale_bytes() * (minima ? 2 : 1); }
  constexpr std::size_t tile_bytes() const { return code_bytes() + all_scale_bytes(); }
};

PackedFormat packed_format(gguf::TensorType type);

struct PackedTile {
  const std::byte* codes;
  const std::byte* scales;
};

// One packed matrix.
struct PackedWeight {
  PackedFormat format;
  std::size_t steps = 0;       // of 32 columns
  std::size_t step_bytes = 0;  // of four tiles
  const std::byte* data = nullptr;

  explicit PackedWeight(const WeightMatrix& weight);

  // Always inline: this header is compiled for several instruction sets, and no two may share code.

  // Of the four tiles of one step that `row_tile` is among.
  [[gnu::always_inline]] std::size_t offset_of(std::size_t row_tile, std::size_t step) const {
    return (row_tile / kTilesTogether * steps + step) * step_bytes;
  }
  // What is read a few steps from now, of `row_tiles` that stand together; the next rows follow the
  // last step.
  [[gnu::always_inline]] void prefetch(std::size_t row_tile, std::size_t step,
                                       std::size_t row_tiles) const {
    constexpr std::size_t kBytesAhead = 4096;
    const std::byte* const soon = tile(row_tile, step).codes + kBytesAhead;
    const std::size_t bytes = step_bytes * row_tiles / kTilesTogether;
    for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(soon + at);
  }
  [[gnu::always_inline]] PackedTile tile(std::size_t row_tile, std::size_t step) const {
    const std::byte* const start = data + offset_of(row_tile, step);
    const std::size_t place = row_tile % kTilesTogether;
    return {start + place * format.code_bytes(),
            start + kTilesTogether * format.code_bytes() + place * format.all_scale_bytes()};
  }
};

std::size_t packed_bytes(const WeightMatrix& weight);
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed);

}  // namespace pagoda::kernels::tiles
