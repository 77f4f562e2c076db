// Exact integer GEMM (kernels/ops.h), one value at a time: rows as integers times weights as
// integers.
#pragma once

#include <vector>

#include "kernels/ops.h"
#include "kernels/ref/quant_block.h"

namespace pagoda::kernels::ref {

// Weights are integers below 2^15, or, with codes of 8 bits, below 2^22. So close to that do the
// group scales of a row come that rounding cannot lift a weight above it.
inline constexpr std::int32_t kWeightIntMax = 32600;
inline constexpr std::int32_t kWideWeightIntMax = 32767 * 128;

// More columns, and sums of limbs would need more than 32 bits.
inline constexpr std::size_t kIntegerColumnsMax = 32768;

// Are these weights multiplied as integers? If not, as bf16.
bool multiplied_as_integers(const WeightMatrix& weight);

// 16 columns of a weight row: weight = row scale * (scale * u + zero_point).
struct IntegerGroup {
  std::int16_t scale;       // in units of the row's
  std::int32_t zero_point;  // 16 bits where minima are stored; else lowest * scale
};
struct IntegerRow {
  float scale = 0;
  std::vector<QuantBlock> codes;     // [columns / 32], as in the file
  std::vector<IntegerGroup> groups;  // [columns / 16]
};

// One row on its grid, as kernels/ops.h defines it.
IntegerRow integer_row(const WeightMatrix& weight, std::size_t row);

// The limbs, sums and scale of a row: that part of KernelSet::pack_activations in int8_bf16.
void to_limbs(const float* x, std::size_t columns, std::byte* activations, std::size_t row);

// The integers of such a row, and what one of them stands for.
struct IntegerActivations {
  std::vector<std::int64_t> integers;
  float scale = 0;
};
IntegerActivations limbs_of(const std::byte* activations, std::size_t columns, std::size_t row);

// KernelSet::matmul for weights on a grid.
void matmul_integers(const Matmul& job, std::size_t begin, std::size_t end);

// The float that stands for an exact sum of products.
float float_of_sum(std::int64_t sum);

}  // namespace pagoda::kernels::ref
