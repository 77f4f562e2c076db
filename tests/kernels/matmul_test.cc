// Matrix products: right within rounding, the same bits in every kernel set of an numerics, and
// independent of how rows are grouped and outputs divided.
#include <gtest/gtest.h>

#include "base/half.h"
#include "base/large_array.h"
#include "kernels/random_values.h"
#include "kernels/ref/dequantise.h"
#include "kernels/select.h"

namespace pagoda::kernels {
namespace {

struct Shape {
  std::size_t rows;
  std::size_t outputs;
  std::size_t columns;
};

struct Weights {
  std::vector<std::byte> bytes;
  WeightMatrix matrix;
};

Weights random_weights(gguf::TensorType type, std::size_t rows, std::size_t columns) {
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  const std::size_t row_bytes = columns / info.block_elements * info.block_bytes;
  Weights weights{random_weight_bytes(rows * row_bytes, 100 + static_cast<std::uint64_t>(type)),
                  {type, nullptr, rows, columns, row_bytes}};
  weights.matrix.data = weights.bytes.data();
  return weights;
}

LargeArray<std::byte> operands_of(const KernelSet& set, const std::vector<float>& x,
                                  std::size_t rows) {
  const std::size_t columns = x.size() / rows;
  LargeArray<std::byte> activations(activation_bytes(set.numerics, columns, rows));
  for (std::size_t row = 0; row < rows; ++row) {
    set.pack_activations(x.data() + row * columns, columns, activations.data(), row);
  }
  return activations;
}

std::vector<float> multiply(const KernelSet& set, const WeightMatrix& weight,
                            const std::vector<float>& x, std::size_t rows, bool accumulate,
                            std::size_t cut) {
  std::vector<float> y(rows * weight.rows, 0.25f);
  LargeArray<std::byte> scratch(set.matmul_scratch(weight.columns));
  LargeArray<std::byte> packed(set.packed_bytes(weight));
  const std::size_t middle = std::min(cut * kMatmulPanel, weight.rows);
  set.pack(weight, 0, middle, packed.data());
  set.pack(weight, middle, weight.rows, packed.data());
  const LargeArray<std::byte> activations = operands_of(set, x, rows);
  WeightMatrix ready = weight;
  ready.packed = packed.data();
  const Matmul job = {.x = activations.data(),
                      .rows = rows,
                      .weight = ready,
                      .y = y.data(),
                      .y_stride = weight.rows,
                      .accumulate = accumulate};
  set.matmul(job, 0, middle, scratch.data());
  set.matmul(job, middle, weight.rows, scratch.data());
  return y;
}

std::vector<gguf::TensorType> readable_types() {
  std::vector<gguf::TensorType> types;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const auto info = gguf::find_tensor_type(id);
    if (info && info->readable) types.push_back(info->type);
  }
  return types;
}

// Every output against the sum in double precision of the factors as the numerics rounds them.
// roundings(columns): how often a sum is rounded on its way; below `smallest` all counts as 0.
void expect_within_rounding(Numerics numerics, double (*factor)(float),
                            double (*roundings)(double columns), double smallest) {
  for (const Shape shape : {Shape{1, 5, 1}, {2, 3, 7}, {3, 17, 64}, {4, 33, 1000}}) {
    const Weights weights = random_weights(gguf::TensorType::kF32, shape.outputs, shape.columns);
    const std::vector<float> x = random_values(shape.rows * shape.columns, 3);
    const std::vector<float> y =
        multiply(ref_set(numerics), weights.matrix, x, shape.rows, false, 0);
    std::vector<float> row(shape.columns);
    for (std::size_t n = 0; n < shape.outputs; ++n) {
      ref_set().unpack_row(weights.matrix, n, row.data());
      for (std::size_t r = 0; r < shape.rows; ++r) {
        double exact = 0;
        double magnitude = 0;
        for (std::size_t k = 0; k < shape.columns; ++k) {
          const double term = factor(x[r * shape.columns + k]) * factor(row[k]);
          exact += term;
          magnitude += std::abs(term);
        }
        const double bound = magnitude * roundings(static_cast<double>(shape.columns)) * 0x1p-24;
        ASSERT_NEAR(y[r * shape.outputs + n], exact, bound + smallest);
      }
    }
  }
}

TEST(Matmul, TheReferenceIsWithinRoundingOfDoublePrecision) {
  // Each lane rounds columns / 8 times, the fold three times.
  expect_within_rounding(
      Numerics::kFp32, [](float v) { return double{v}; },
      [](double columns) { return columns / 8 + 4; }, 1e-44);
}

TEST(Matmul, TheInt8Bf16ReferenceIsWithinRoundingOfDoublePrecision) {
  // A half rounds 16 times, then halves and steps are added.
  expect_within_rounding(
      Numerics::kInt8Bf16, [](float v) { return double{float_from_bf16(bf16_from_float(v))}; },
      [](double columns) { return columns / 32 + 18; }, 1e-37);
}

TEST(Matmul, EverySetGivesTheReferenceBitsForEveryTypeAndShape) {
  for (const gguf::TensorType type : readable_types()) {
    const std::size_t block = gguf::tensor_type_info(type).block_elements;
    for (const Shape shape : {Shape{1, 1, 1},
                              {1, 16, 2},
                              {2, 17, 1},
                              {3, 31, 3},
                              {7, 50, 2},
                              {17, 64, 1},
                              {33, 48, 2},
                              {50, 33, 1},
                              {70, 20, 1}}) {
      const std::size_t columns = block == 1 ? shape.columns * 13 : shape.columns * block;
      const Weights weights = random_weights(type, shape.outputs, columns);
      const std::vector<float> x = random_values(shape.rows * columns, 5);
      for (const bool accumulate : {false, true}) {
        for (const KernelSet* const set : available_sets()) {
          const auto expected =
              multiply(ref_set(set->numerics), weights.matrix, x, shape.rows, accumulate, 0);
          const auto y = multiply(*set, weights.matrix, x, shape.rows, accumulate, 1);
          ASSERT_TRUE(same_bits(y, expected))
              << set->name << " " << gguf::tensor_type_info(type).name << " rows " << shape.rows
              << " outputs " << shape.outputs << " columns " << columns;
        }
      }
    }
  }
}

TEST(Matmul, ARowsResultDoesNotDependOnTheRowsBesideIt) {
  constexpr std::size_t kRows = 41;
  constexpr std::size_t kColumns = 96;
  constexpr std::size_t kOutputs = 37;
  const Weights weights = random_weights(gguf::TensorType::kQ4_1, kOutputs, kColumns);
  const std::vector<float> x = random_values(kRows * kColumns, 9);
  for (const KernelSet* const set : available_sets()) {
    const auto together = multiply(*set, weights.matrix, x, kRows, false, 0);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto from = x.begin() + static_cast<std::ptrdiff_t>(r * kColumns);
      const auto alone = multiply(*set, weights.matrix, {from, from + kColumns}, 1, false, 2);
      const auto part = together.begin() + static_cast<std::ptrdiff_t>(r * kOutputs);
      ASSERT_TRUE(same_bits(alone, {part, part + kOutputs})) << set->name << " row " << r;
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
