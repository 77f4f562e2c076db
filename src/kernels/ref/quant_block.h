// Quantised weights as they are stored: small integer codes, and for each group of them a scale
// and a minimum. value = u * scale + minimum, u = code - lowest, within a rounding of what
// dequantise_row gives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/tensor_type.h"

namespace pagoda::kernels::ref {

// 32 columns of one weight row: two groups of 16, often with one scale.
struct QuantBlock {
  std::uint8_t codes[32];  // u
  float scales[2];
  float minima[2];
};

// The properties that all groups of a quantised type share.
struct QuantTraits {
  bool nibbles;       // every u is below 16
  int lowest;         // what u = 0 stands for: minimum = lowest * scale, exact, unless `minima`
  bool half_scales;   // scales and minima are halves: fp16 holds them exactly
  bool minima;        // minima are stored
  bool scale_per_16;  // the two groups have scales of their own
  int highest;        // the largest u
  bool wide;          // codes of 8 bits: a grid of 16 bits would be too coarse for them
  bool powers_of_two = false;  // all scales are: a grid that is one, too, holds them exactly
};

// Nothing for types without codes (floats) and for rare ones, which are better kept as floats.
const QuantTraits* quant_traits(gguf::TensorType type);

// Columns [column, column + 32) of a row; column is a multiple of 32. Types with quant_traits only.
QuantBlock read_quant_block(gguf::TensorType type, const std::byte* row, std::size_t column);

}  // namespace pagoda::kernels::ref
