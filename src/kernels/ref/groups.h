// Group sums (kernels/ops.h), one value at a time: rows as integer digits times weights as codes.
#pragma once

#include "kernels/ops.h"

namespace pagoda::kernels::ref {

// Up to 32 values as digits; those that are missing are 0.
void put_digits(const float* x, std::size_t count, GroupDigits& digits, GroupScales& scales);

// The digits and scales of columns [begin, end): that part of KernelSet::to_operand in pairs.
void to_digits(const float* x, std::size_t columns, std::size_t begin, std::size_t end,
               std::byte* operand);

// KernelSet::matmul for weights with code_traits.
void matmul_groups(const Matmul& job, std::size_t begin, std::size_t end);

}  // namespace pagoda::kernels::ref
