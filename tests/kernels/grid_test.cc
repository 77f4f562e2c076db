// Grid sums: codes stand for the weights of the file, integers on a grid for codes and for the row,
// and their products are exact but for the last roundings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/large_array.h"
#include "kernels/random_values.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/grid.h"
#include "kernels/select.h"

namespace pagoda::kernels {
namespace {

std::vector<gguf::TensorType> coded_types() {
  std::vector<gguf::TensorType> types;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const auto info = gguf::find_tensor_type(id);
    if (info && info->readable && ref::code_traits(info->type) != nullptr) {
      types.push_back(info->type);
    }
  }
  return types;
}

std::size_t row_bytes(gguf::TensorType type, std::size_t columns) {
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  return columns / info.block_elements * info.block_bytes;
}

TEST(Grid, CodesStandForWhatTheFileSays) {
  constexpr std::size_t kColumns = 1024;
  for (const gguf::TensorType type : coded_types()) {
    const std::vector<std::byte> bytes = random_weight_bytes(row_bytes(type, kColumns), 21);
    std::vector<float> values(kColumns);
    ref::dequantise_row(type, bytes.data(), values.data(), kColumns);
    for (std::size_t column = 0; column < kColumns; column += kGroup) {
      const ref::GroupCodes group = ref::read_codes(type, bytes.data(), column);
      for (std::size_t i = 0; i < kGroup; ++i) {
        const double product = double{group.scales[i / 16]} * group.codes[i];
        const double minimum = group.minima[i / 16];
        const double slack = (std::abs(product) + std::abs(minimum)) * 0x1p-23;
        ASSERT_NEAR(values[column + i], product + minimum, slack)
            << gguf::tensor_type_info(type).name << " column " << column + i;
        ASSERT_LT(group.codes[i], ref::code_traits(type)->nibbles ? 16 : 256);
      }
    }
  }
}

WeightMatrix matrix_of(gguf::TensorType type, const std::vector<std::byte>& bytes,
                       std::size_t outputs, std::size_t columns) {
  return {type, bytes.data(), outputs, columns, row_bytes(type, columns), nullptr};
}

// The integers of a row of weights.
std::vector<double> integers_of(const WeightMatrix& weight, std::size_t row,
                                const ref::GridRow& grid) {
  std::vector<double> integers(weight.columns);
  for (std::size_t k = 0; k < weight.columns; ++k) {
    const std::size_t group = k / kGroup * kGroup;
    const ref::GroupCodes codes =
        ref::read_codes(weight.type, weight.data + row * weight.row_bytes, group);
    const ref::GridGroup& place = grid.groups[k / 16];
    integers[k] = place.step * codes.codes[k - group] + place.offset;
  }
  return integers;
}

TEST(Grid, WeightsAreWithinTheRoundingOfTheirStepsAndFitTheirDigits) {
  constexpr std::size_t kColumns = 1024;
  for (const gguf::TensorType type : coded_types()) {
    const ref::CodeTraits& traits = *ref::code_traits(type);
    const std::vector<std::byte> bytes = random_weight_bytes(row_bytes(type, kColumns), 23);
    const WeightMatrix weight = matrix_of(type, bytes, 1, kColumns);
    const ref::GridRow grid = ref::grid_of(weight, 0);
    const std::vector<double> integers = integers_of(weight, 0, grid);
    std::vector<float> values(kColumns);
    ref::dequantise_row(type, bytes.data(), values.data(), kColumns);
    // A step is off by half at most, and so is an offset that is stored.
    const double reach = traits.minima ? 0.5 * traits.highest
                                       : std::max(-traits.lowest, traits.highest + traits.lowest);
    const double bound = 0.5 * reach + (traits.minima ? 0.5 : 0) + 1e-2;
    for (std::size_t k = 0; k < kColumns; ++k) {
      ASSERT_NEAR(integers[k], values[k] / grid.scale, bound)
          << gguf::tensor_type_info(type).name << " column " << k;
      ASSERT_LT(std::abs(integers[k]), traits.wide ? 0x1p22 : 0x1p15);
    }
  }
}

struct Digits {
  std::vector<double> integers;
  double scale;
};

Digits digits_of(const KernelSet& set, const std::vector<float>& x) {
  const std::size_t columns = x.size();
  constexpr std::size_t kRow = 18;
  const OperandLayout layout(columns);
  LargeArray<std::byte> operands(operands_bytes(Arithmetic::kPairs, columns, kRow + 1));
  set.to_operand(x.data(), columns, operands.data(), kRow);
  Digits result;
  float scale = 0;
  std::memcpy(&scale, operands.data() + layout.scale(kRow), sizeof(scale));
  result.scale = scale;
  std::vector<GroupSums> sums(groups_of(columns));
  std::memcpy(sums.data(), operands.data() + layout.sums(kRow), sums.size() * sizeof(GroupSums));
  for (std::size_t i = 0; i < steps_of(columns) * kStep; ++i) {
    StepDigits digits;
    std::memcpy(&digits,
                operands.data() + layout.digits(kRow) + i / kStep * OperandLayout::kDigitsStride,
                sizeof(digits));
    const int high = digits.high[i % kStep];
    const int low = digits.low[i % kStep];
    if (i >= columns) {
      EXPECT_EQ(high, 0) << set.name;
      EXPECT_EQ(low, 0) << set.name;
      continue;
    }
    result.integers.push_back(256 * high + low);
    GroupSums& sum = sums[i / kGroup];
    sum.high[i / 16 % 2] = static_cast<std::int16_t>(sum.high[i / 16 % 2] - high);
    sum.low[i / 16 % 2] = static_cast<std::int16_t>(sum.low[i / 16 % 2] - low);
  }
  for (const GroupSums& rest : sums) {
    EXPECT_EQ(rest.high[0] | rest.high[1] | rest.low[0] | rest.low[1], 0) << set.name;
  }
  return result;
}

TEST(Grid, DigitsAreWithinHalfAStepOfTheRowAndTheirSumsAreRight) {
  for (const std::size_t columns : {1, 31, 32, 33, 64, 100, 576}) {
    const std::vector<float> x = random_values(columns, 31);
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::abs(value));
    for (const KernelSet* const set : available_sets()) {
      if (set->arithmetic != Arithmetic::kPairs) continue;
      const Digits digits = digits_of(*set, x);
      ASSERT_NEAR(digits.scale * kDigitsMax, largest, largest * 1e-6) << set->name;
      for (std::size_t i = 0; i < columns; ++i) {
        ASSERT_NEAR(digits.integers[i] * digits.scale, x[i], digits.scale * 0.504)
            << set->name << " " << i;
      }
    }
  }
}

std::vector<float> multiply(const KernelSet& set, WeightMatrix weight, const std::vector<float>& x,
                            std::size_t rows) {
  LargeArray<std::byte> packed(set.packed_bytes(weight));
  set.pack(weight, 0, weight.rows, packed.data());
  weight.packed = packed.data();
  LargeArray<std::byte> operands(operands_bytes(set.arithmetic, weight.columns, rows));
  for (std::size_t row = 0; row < rows; ++row) {
    set.to_operand(x.data() + row * weight.columns, weight.columns, operands.data(), row);
  }
  LargeArray<std::byte> scratch(set.matmul_scratch(weight.columns));
  std::vector<float> y(rows * weight.rows);
  set.matmul({.x = operands.data(),
              .rows = rows,
              .weight = weight,
              .y = y.data(),
              .y_stride = weight.rows,
              .accumulate = false},
             0, weight.rows, scratch.data());
  return y;
}

TEST(Grid, ProductsOfIntegersAreRoundedOnlyWhenTheyAreScaled) {
  constexpr std::size_t kColumns = 1024;
  constexpr std::size_t kOutputs = 21;
  const KernelSet& set = ref_set(Arithmetic::kPairs);
  const std::vector<float> x = random_values(kColumns, 41);
  const Digits digits = digits_of(set, x);
  for (const gguf::TensorType type : coded_types()) {
    const std::vector<std::byte> bytes =
        random_weight_bytes(kOutputs * row_bytes(type, kColumns), 43);
    const WeightMatrix weight = matrix_of(type, bytes, kOutputs, kColumns);
    const std::vector<float> y = multiply(set, weight, x, 1);
    for (std::size_t n = 0; n < kOutputs; ++n) {
      const ref::GridRow grid = ref::grid_of(weight, n);
      const std::vector<double> integers = integers_of(weight, n, grid);
      double sum = 0;  // exact: below 2^53
      for (std::size_t k = 0; k < kColumns; ++k) sum += integers[k] * digits.integers[k];
      const double product = sum * grid.scale * digits.scale;
      ASSERT_NEAR(y[n], product, std::abs(product) * 3.01 * 0x1p-24)
          << gguf::tensor_type_info(type).name << " output " << n;
    }
  }
}

// Every product at its largest, over the most columns: no sum on the way may overflow.
TEST(Grid, TheLargestSumsAreExactInEverySet) {
  constexpr std::size_t kRows = 6;
  constexpr std::size_t kOutputs = 17;
  std::vector<float> x(kRows * ref::kGridColumnsMax);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / ref::kGridColumnsMax;
    x[i] = row % 2 == 0 || i % (row + 1) == 0 ? 1.0f : -1.0f;
  }
  for (const gguf::TensorType type : {gguf::TensorType::kQ4_0, gguf::TensorType::kQ4_1,
                                      gguf::TensorType::kQ5_1, gguf::TensorType::kQ8_0}) {
    const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
    std::vector<std::byte> bytes(kOutputs * row_bytes(type, ref::kGridColumnsMax));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t place = i % info.block_bytes;
      const std::size_t row = i / row_bytes(type, ref::kGridColumnsMax);
      const bool factor = place < (ref::code_traits(type)->minima ? 4 : 2);
      // Factors of 1; all codes at the end of their range, at the lower in every other output.
      const std::uint8_t end = type == gguf::TensorType::kQ8_0 ? (row % 2 == 0 ? 0x7F : 0x80)
                                                               : (row % 2 == 0 ? 0xFF : 0x00);
      bytes[i] = static_cast<std::byte>(factor ? (place % 2 == 0 ? 0x00 : 0x3C) : end);
    }
    const WeightMatrix weight = matrix_of(type, bytes, kOutputs, ref::kGridColumnsMax);
    ASSERT_TRUE(ref::on_grid(weight));
    const std::vector<float> expected = multiply(ref_set(Arithmetic::kPairs), weight, x, kRows);
    ASSERT_NEAR(expected[0] / expected[2], 1, 1e-6);
    for (const KernelSet* const set : available_sets()) {
      if (set->arithmetic != Arithmetic::kPairs) continue;
      ASSERT_TRUE(same_bits(multiply(*set, weight, x, kRows), expected))
          << set->name << " " << info.name;
      const std::vector<float> first(x.begin(), x.begin() + ref::kGridColumnsMax);
      ASSERT_TRUE(same_bits(multiply(*set, weight, first, 1),
                            {expected.begin(), expected.begin() + kOutputs}))
          << set->name << " " << info.name;
    }
  }
}

TEST(Grid, LongerRowsOfCodesAreMultipliedAsFloats) {
  constexpr std::size_t kColumns = ref::kGridColumnsMax + 32;
  constexpr std::size_t kOutputs = 3;
  const std::vector<std::byte> bytes =
      random_weight_bytes(kOutputs * row_bytes(gguf::TensorType::kQ8_0, kColumns), 57);
  const WeightMatrix weight = matrix_of(gguf::TensorType::kQ8_0, bytes, kOutputs, kColumns);
  ASSERT_FALSE(ref::on_grid(weight));
  const std::vector<float> x = random_values(kColumns, 59);
  for (const KernelSet* const set : available_sets()) {
    EXPECT_TRUE(
        same_bits(multiply(*set, weight, x, 1), multiply(ref_set(set->arithmetic), weight, x, 1)))
        << set->name;
  }
}

TEST(Grid, ARowThatIsNotFiniteGivesNanAndASmallOneZero) {
  constexpr std::size_t kColumns = 64;
  constexpr std::size_t kOutputs = 17;
  const std::vector<std::byte> bytes =
      random_weight_bytes(kOutputs * row_bytes(gguf::TensorType::kQ4_1, kColumns), 47);
  const WeightMatrix weight = matrix_of(gguf::TensorType::kQ4_1, bytes, kOutputs, kColumns);
  for (const KernelSet* const set : available_sets()) {
    for (const float odd : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> x = random_values(kColumns, 49);
      x[37] = odd;
      for (const float y : multiply(*set, weight, x, 1)) {
        ASSERT_FALSE(std::isfinite(y)) << set->name;
      }
    }
    const std::vector<float> tiny(kColumns, 0x1p-130f);
    for (const float y : multiply(*set, weight, tiny, 1)) {
      ASSERT_LT(std::abs(y), 0x1p-100f) << set->name;
    }
  }
}

TEST(Grid, AWeightThatIsNotFiniteMakesItsOutputNan) {
  constexpr std::size_t kColumns = 64;
  constexpr std::size_t kOutputs = 17;
  std::vector<std::byte> bytes =
      random_weight_bytes(kOutputs * row_bytes(gguf::TensorType::kQ8_0, kColumns), 51);
  bytes[row_bytes(gguf::TensorType::kQ8_0, kColumns) * 3 + 1] = std::byte{0x7C};  // infinite scale
  bytes[row_bytes(gguf::TensorType::kQ8_0, kColumns) * 3] = std::byte{0};
  const WeightMatrix weight = matrix_of(gguf::TensorType::kQ8_0, bytes, kOutputs, kColumns);
  const std::vector<float> x = random_values(kColumns, 53);
  for (const KernelSet* const set : available_sets()) {
    if (set->arithmetic != Arithmetic::kPairs) continue;
    const std::vector<float> y = multiply(*set, weight, x, 1);
    for (std::size_t n = 0; n < kOutputs; ++n) EXPECT_EQ(std::isnan(y[n]), n == 3) << set->name;
  }
}

}  // namespace
}  // namespace pagoda::kernels
