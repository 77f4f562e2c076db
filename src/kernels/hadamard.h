// The Walsh-Hadamard transform, which spreads what is large in one dimension over all of a block.
// It is its own inverse.
#pragma once

#include <cstddef>

namespace pagoda::kernels {

// Multiplies each block of `block` values (a power of two, a divisor of `count`) by the orthonormal
// Hadamard matrix of that size: sums and differences of values 1, 2, 4, … apart, in that order,
// then all times 1 / sqrt(block). The same operations on every CPU.
void hadamard(float* values, std::size_t count, std::size_t block);

}  // namespace pagoda::kernels
