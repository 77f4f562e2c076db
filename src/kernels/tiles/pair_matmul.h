// Pair sums over packed weights that are floats.
#pragma once

#include "kernels/tiles/packed_weight.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

std::size_t pairs_scratch(std::size_t columns);

// Row tiles [begin, end) of the weight with every row of x.
void multiply_pairs(const Matmul& job, const tiles::PackedWeight& weight, std::size_t begin,
                    std::size_t end, std::byte* scratch);

}  // namespace pagoda::kernels::PAGODA_TILE_SET
