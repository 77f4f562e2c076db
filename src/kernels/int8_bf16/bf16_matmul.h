// Even-odd reductions over packed weights that are floats.
#pragma once

#include "kernels/int8_bf16/packed_weight.h"

namespace pagoda::kernels::PAGODA_ISA {

std::size_t bf16_scratch(std::size_t columns);

// Row tiles [begin, end) of the weight with every row of x.
void multiply_bf16(const Matmul& job, const int8_bf16::PackedWeight& weight, std::size_t begin,
                   std::size_t end, std::byte* scratch);

}  // namespace pagoda::kernels::PAGODA_ISA
