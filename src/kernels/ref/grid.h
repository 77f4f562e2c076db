// Grid sums (kernels/ops.h), one value at a time: rows as integers times weights as integers.
#pragma once

#include <vector>

#include "kernels/ops.h"
#include "kernels/ref/group_codes.h"

namespace pagoda::kernels::ref {

// Weights are integers below 2^15, or, with codes of 8 bits, below 2^22. So close to that do the
// steps of a row come that rounding cannot lift a weight above it.
inline constexpr std::int32_t kGridMax = 32600;
inline constexpr std::int32_t kWideGridMax = 32767 * 128;

// More columns, and sums of digits would need more than 32 bits.
inline constexpr std::size_t kGridColumnsMax = 32768;

// Are these weights multiplied as integers? If not, as bf16.
bool on_grid(const WeightMatrix& weight);

// 16 columns of a weight row: weight = row scale * (step * u + offset).
struct GridGroup {
  std::int16_t step;
  std::int32_t offset;  // 16 bits where minima are stored; else lowest * step
};
struct GridRow {
  float scale = 0;
  std::vector<GroupCodes> codes;  // [columns / 32], as in the file
  std::vector<GridGroup> groups;  // [columns / 16]
};

// One row on its grid, as kernels/ops.h defines it.
GridRow grid_of(const WeightMatrix& weight, std::size_t row);

// The digits, sums and scale of a row: that part of KernelSet::to_operand in pairs.
void to_digits(const float* x, std::size_t columns, std::byte* operands, std::size_t row);

// KernelSet::matmul for weights on a grid.
void matmul_grid(const Matmul& job, std::size_t begin, std::size_t end);

// The float that stands for an exact sum of products.
float float_of_sum(std::int64_t sum);

}  // namespace pagoda::kernels::ref
