// Quantised weights as they are stored: small integer codes, and for each group of them a scale
// and a minimum. value = code * scale + minimum, rounded once, is what dequantise_row gives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/tensor_type.h"

namespace pagoda::kernels::tiles {

// 32 columns of one weight row: two groups of 16, often with one scale.
struct GroupCodes {
  std::int8_t codes[32];
  float scales[2];
  float minima[2];
};

// What the groups of a type have in common.
struct CodeTraits {
  bool nibbles;        // every code is lowest … lowest + 15
  std::int8_t lowest;  // code of a nibble 0
  bool half_scales;    // scales and minima are halves: fp16 holds them exactly
  bool minima;         // some are not 0
  bool scale_each_16;  // the two groups have scales of their own
};

// Nothing for types without codes (floats) and for rare ones, which are better kept as floats.
const CodeTraits* code_traits(gguf::TensorType type);

// Columns [column, column + 32) of a row; column is a multiple of 32. Types with code_traits only.
GroupCodes read_codes(gguf::TensorType type, const std::byte* row, std::size_t column);

}  // namespace pagoda::kernels::tiles
