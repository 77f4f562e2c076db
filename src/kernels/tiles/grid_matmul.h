// Grid sums over packed weights that are codes.
#pragma once

#include "kernels/tiles/packed_weight.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

// The ways through a matrix of codes; all give the same bits. Row tiles [begin, end) of the weight.
//
//   by rows   a few rows of x: codes are multiplied as they are, their sums by the steps
//   by tiles  16 rows of x at a time: codes become the digits of weights, which the matrix unit
//             multiplies. Only sets that have one, or emulate one, have this way.
void multiply_by_rows(const Matmul& job, const tiles::PackedWeight& weight, std::size_t first_row,
                      std::size_t begin, std::size_t end);
void multiply_by_tiles(const Matmul& job, const tiles::PackedWeight& weight, std::size_t rows,
                       std::size_t begin, std::size_t end, std::byte* scratch);
std::size_t tiles_scratch(std::size_t columns);

}  // namespace pagoda::kernels::PAGODA_TILE_SET
