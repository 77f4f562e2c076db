// Quantised weights to floats, one row at a time: the definition of every tensor type that the
// engine reads. Results equal gguf-py's numpy code bit for bit, so the order of the float
// operations here is part of the contract.
//
// Faster unpackers elsewhere must produce these bits.
#pragma once

#include <cstddef>

#include "gguf/tensor_type.h"

namespace pagoda::kernels::ref {

// `elements` is a multiple of the type's block; `row` need not be aligned. The type is readable.
void dequantise_row(gguf::TensorType type, const std::byte* row, float* out, std::size_t elements);

}  // namespace pagoda::kernels::ref
