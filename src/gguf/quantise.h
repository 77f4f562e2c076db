// Floats to quantised blocks, or to other floats, for weights that are made anew at load.
//
// Plain IEEE arithmetic, one rounding an operation and one order of sums: the same floats give the
// same bytes on every machine.
#pragma once

#include <cstddef>
#include <span>

#include "gguf/tensor_type.h"

namespace pagoda::gguf {

// Raised when other bytes are written for the same floats.
inline constexpr int kQuantiserVersion = 1;

// Writes values, a multiple of the type's block_elements, as blocks of Q8_0, Q4_0 or Q4_K, or as
// F32, F16 or BF16, rounded to nearest even. Returns false when a value is not finite, or too large
// for the type or for a scale in half precision; `blocks` holds nothing of use then.
bool quantise_row(TensorType type, std::span<const float> values, std::byte* blocks);

// One block of 32 or 256 values. Q8_0 and Q4_0 round to nearest, as the PyPI package gguf does;
// Q4_K looks for the scales and minima of the least square error.
bool quantise_q8_0(const float* values, std::byte* block);
bool quantise_q4_0(const float* values, std::byte* block);
bool quantise_q4_k(const float* values, std::byte* block);

}  // namespace pagoda::gguf
