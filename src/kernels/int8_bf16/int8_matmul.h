// Exact integer GEMM over packed weights that are codes.
#pragma once

#include "kernels/int8_bf16/packed_weight.h"

namespace pagoda::kernels::PAGODA_ISA {

// The ways through a matrix of codes; all give the same bits. Row tiles [begin, end) of the weight.
//
//   by rows   a few rows of x: codes are multiplied as they are, their sums by the group scales
//   by tiles  16 rows of x at a time: codes become the limbs of weights, which the matrix unit
//             multiplies. Only sets that have one, or emulate one, have this way.
void multiply_by_rows(const Matmul& job, const int8_bf16::PackedWeight& weight,
                      std::size_t first_row, std::size_t begin, std::size_t end);
void multiply_by_tiles(const Matmul& job, const int8_bf16::PackedWeight& weight, std::size_t rows,
                       std::size_t begin, std::size_t end, std::byte* scratch);
std::size_t by_tiles_scratch(std::size_t columns);

}  // namespace pagoda::kernels::PAGODA_ISA
