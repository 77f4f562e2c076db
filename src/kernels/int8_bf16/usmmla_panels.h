// Codes arranged for instructions that multiply two outputs with eight columns at once (Arm's
// USMMLA). Weights that are floats stand as in packed_weight.h.
//
//   packed = rows 0-15:   group 0: codes, then scales
//                         group 1: …
//            rows 16-31:  …
//            [rows] fp32, the scales of rows
//
//   codes of 16 rows, 32 columns: a *panel* is 4 rows, k8 is 8 columns
//     nibbles  [2 panel pairs][4 k8][4 rows][8] bytes: rows 0-3 of the pair in the low bits, rows
//              4-7 in the high ones
//     bytes    [4 panels][4 k8][4 rows][8]
//   scales     [16] words and, with zero points or a scale for each 16 columns, [16] words of those
//
// A matrix is read from its first byte to its last. Rows beyond it are zero.
#pragma once

#include "kernels/int8_bf16/packed_weight.h"

namespace pagoda::kernels::int8_bf16 {

struct UsmmlaPanels {
  PackedFormat format;
  std::size_t groups = 0;       // of 32 columns
  std::size_t tiles_bytes = 0;  // of all tiles of 16 rows and 32 columns
  const std::byte* data = nullptr;

  explicit UsmmlaPanels(const WeightMatrix& weight);

  [[gnu::always_inline]] std::size_t offset_of(std::size_t row_tile, std::size_t group) const {
    return (row_tile * groups + group) * format.tile_bytes();
  }
  [[gnu::always_inline]] const std::byte* row_tile(std::size_t index) const {
    return data + offset_of(index, 0);
  }
  [[gnu::always_inline]] const float* row_scales(std::size_t index) const {
    return reinterpret_cast<const float*>(data + tiles_bytes) + index * kTileRows;
  }
};

// KernelSet::packed_bytes and pack.
std::size_t usmmla_panels_bytes(const WeightMatrix& weight);
void pack_usmmla_panels(const WeightMatrix& weight, std::size_t begin, std::size_t end,
                        std::byte* packed);

}  // namespace pagoda::kernels::int8_bf16
