// Exact integer GEMM: codes stand for the weights of the file, integers on a grid for codes and for
// the row, and their products are exact but for the last roundings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/large_array.h"
#include "kernels/random_values.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/integer_gemm.h"
#include "kernels/select.h"

namespace pagoda::kernels {
namespace {

std::vector<gguf::TensorType> quantised_types() {
  std::vector<gguf::TensorType> types;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const auto info = gguf::find_tensor_type(id);
    if (info && info->readable && ref::quant_traits(info->type) != nullptr) {
      types.push_back(info->type);
    }
  }
  return types;
}

std::size_t row_bytes(gguf::TensorType type, std::size_t columns) {
  const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
  return columns / info.block_elements * info.block_bytes;
}

TEST(IntegerGemm, CodesStandForWhatTheFileSays) {
  constexpr std::size_t kColumns = 1024;
  for (const gguf::TensorType type : quantised_types()) {
    const std::vector<std::byte> bytes = random_weight_bytes(row_bytes(type, kColumns), 21);
    std::vector<float> values(kColumns);
    ref::dequantise_row(type, bytes.data(), values.data(), kColumns);
    for (std::size_t column = 0; column < kColumns; column += kGroupColumns) {
      const ref::QuantBlock group = ref::read_quant_block(type, bytes.data(), column);
      for (std::size_t i = 0; i < kGroupColumns; ++i) {
        const double product = double{group.scales[i / 16]} * group.codes[i];
        const double minimum = group.minima[i / 16];
        const double slack = (std::abs(product) + std::abs(minimum)) * 0x1p-23;
        ASSERT_NEAR(values[column + i], product + minimum, slack)
            << gguf::tensor_type_info(type).name << " column " << column + i;
        ASSERT_LT(group.codes[i], ref::quant_traits(type)->nibbles ? 16 : 256);
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
                                const ref::IntegerRow& grid) {
  std::vector<double> integers(weight.columns);
  for (std::size_t k = 0; k < weight.columns; ++k) {
    const std::size_t group = k / kGroupColumns * kGroupColumns;
    const ref::QuantBlock codes =
        ref::read_quant_block(weight.type, weight.data + row * weight.row_bytes, group);
    const ref::IntegerGroup& place = grid.groups[k / 16];
    integers[k] = place.scale * codes.codes[k - group] + place.zero_point;
  }
  return integers;
}

TEST(IntegerGemm, WeightsAreWithinTheRoundingOfTheirScalesAndFitTheirLimbs) {
  constexpr std::size_t kColumns = 1024;
  for (const gguf::TensorType type : quantised_types()) {
    const ref::QuantTraits& traits = *ref::quant_traits(type);
    const std::vector<std::byte> bytes = random_weight_bytes(row_bytes(type, kColumns), 23);
    const WeightMatrix weight = matrix_of(type, bytes, 1, kColumns);
    const ref::IntegerRow grid = ref::integer_row(weight, 0);
    const std::vector<double> integers = integers_of(weight, 0, grid);
    std::vector<float> values(kColumns);
    ref::dequantise_row(type, bytes.data(), values.data(), kColumns);
    // A group scale is off by half at most, and so is a zero point that is stored.
    const double extent = traits.minima ? 0.5 * traits.highest
                                        : std::max(-traits.lowest, traits.highest + traits.lowest);
    const double bound = 0.5 * extent + (traits.minima ? 0.5 : 0) + 1e-2;
    for (std::size_t k = 0; k < kColumns; ++k) {
      ASSERT_NEAR(integers[k], values[k] / grid.scale, bound)
          << gguf::tensor_type_info(type).name << " column " << k;
      ASSERT_LT(std::abs(integers[k]), traits.wide ? 0x1p22 : 0x1p15);
    }
  }
}

struct Limbs {
  std::vector<double> integers;
  double scale;
};

Limbs limbs_of(const KernelSet& set, const std::vector<float>& x) {
  const std::size_t columns = x.size();
  constexpr std::size_t kRow = 18;
  const ActivationLayout layout(columns);
  LargeArray<std::byte> activations(activation_bytes(Numerics::kInt8Bf16, columns, kRow + 1));
  set.pack_activations(x.data(), columns, activations.data(), kRow);
  Limbs result;
  float scale = 0;
  std::memcpy(&scale, activations.data() + layout.scale(kRow), sizeof(scale));
  result.scale = scale;
  std::vector<GroupSums> sums(groups_of(columns));
  std::memcpy(sums.data(), activations.data() + layout.sums(kRow), sums.size() * sizeof(GroupSums));
  for (std::size_t i = 0; i < k_blocks_of(columns) * kBlockK; ++i) {
    Int8Limbs limbs;
    std::memcpy(
        &limbs,
        activations.data() + layout.limbs(kRow) + i / kBlockK * ActivationLayout::kLimbsStride,
        sizeof(limbs));
    const int high = limbs.high[i % kBlockK];
    const int low = limbs.low[i % kBlockK];
    if (i >= columns) {
      EXPECT_EQ(high, 0) << set.name;
      EXPECT_EQ(low, 0) << set.name;
      continue;
    }
    result.integers.push_back(256 * high + low);
    GroupSums& sum = sums[i / kGroupColumns];
    sum.high[i / 16 % 2] = static_cast<std::int16_t>(sum.high[i / 16 % 2] - high);
    sum.low[i / 16 % 2] = static_cast<std::int16_t>(sum.low[i / 16 % 2] - low);
  }
  for (const GroupSums& rest : sums) {
    EXPECT_EQ(rest.high[0] | rest.high[1] | rest.low[0] | rest.low[1], 0) << set.name;
  }
  return result;
}

TEST(IntegerGemm, LimbsAreWithinHalfAUnitOfTheRowAndTheirSumsAreRight) {
  for (const std::size_t columns : {1, 31, 32, 33, 64, 100, 576}) {
    const std::vector<float> x = random_values(columns, 31);
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::abs(value));
    for (const KernelSet* const set : available_sets()) {
      if (set->numerics != Numerics::kInt8Bf16) continue;
      const Limbs limbs = limbs_of(*set, x);
      ASSERT_NEAR(limbs.scale * kLimbsMax, largest, largest * 1e-6) << set->name;
      for (std::size_t i = 0; i < columns; ++i) {
        ASSERT_NEAR(limbs.integers[i] * limbs.scale, x[i], limbs.scale * 0.504)
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
  LargeArray<std::byte> activations(activation_bytes(set.numerics, weight.columns, rows));
  for (std::size_t row = 0; row < rows; ++row) {
    set.pack_activations(x.data() + row * weight.columns, weight.columns, activations.data(), row);
  }
  LargeArray<std::byte> scratch(set.matmul_scratch(weight.columns));
  std::vector<float> y(rows * weight.rows);
  set.matmul({.x = activations.data(),
              .rows = rows,
              .weight = weight,
              .y = y.data(),
              .y_stride = weight.rows,
              .accumulate = false},
             0, weight.rows, scratch.data());
  return y;
}

TEST(IntegerGemm, ProductsOfIntegersAreRoundedOnlyWhenTheyAreScaled) {
  constexpr std::size_t kColumns = 1024;
  constexpr std::size_t kOutputs = 21;
  const KernelSet& set = ref_set(Numerics::kInt8Bf16);
  const std::vector<float> x = random_values(kColumns, 41);
  const Limbs limbs = limbs_of(set, x);
  for (const gguf::TensorType type : quantised_types()) {
    const std::vector<std::byte> bytes =
        random_weight_bytes(kOutputs * row_bytes(type, kColumns), 43);
    const WeightMatrix weight = matrix_of(type, bytes, kOutputs, kColumns);
    const std::vector<float> y = multiply(set, weight, x, 1);
    for (std::size_t n = 0; n < kOutputs; ++n) {
      const ref::IntegerRow grid = ref::integer_row(weight, n);
      const std::vector<double> integers = integers_of(weight, n, grid);
      double sum = 0;  // exact: below 2^53
      for (std::size_t k = 0; k < kColumns; ++k) sum += integers[k] * limbs.integers[k];
      const double product = sum * grid.scale * limbs.scale;
      ASSERT_NEAR(y[n], product, std::abs(product) * 3.01 * 0x1p-24)
          << gguf::tensor_type_info(type).name << " output " << n;
    }
  }
}

// Every product at its largest, over the most columns: no sum on the way may overflow.
TEST(IntegerGemm, TheLargestSumsAreExactInEverySet) {
  constexpr std::size_t kRows = 6;
  constexpr std::size_t kOutputs = 17;
  std::vector<float> x(kRows * ref::kIntegerColumnsMax);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / ref::kIntegerColumnsMax;
    x[i] = row % 2 == 0 || i % (row + 1) == 0 ? 1.0f : -1.0f;
  }
  for (const gguf::TensorType type : {gguf::TensorType::kQ4_0, gguf::TensorType::kQ4_1,
                                      gguf::TensorType::kQ5_1, gguf::TensorType::kQ8_0}) {
    const gguf::TensorTypeInfo& info = gguf::tensor_type_info(type);
    std::vector<std::byte> bytes(kOutputs * row_bytes(type, ref::kIntegerColumnsMax));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t place = i % info.block_bytes;
      const std::size_t row = i / row_bytes(type, ref::kIntegerColumnsMax);
      const bool factor = place < (ref::quant_traits(type)->minima ? 4 : 2);
      // Factors of 1; all codes at the end of their range, at the lower in every other output.
      const std::uint8_t end = type == gguf::TensorType::kQ8_0 ? (row % 2 == 0 ? 0x7F : 0x80)
                                                               : (row % 2 == 0 ? 0xFF : 0x00);
      bytes[i] = static_cast<std::byte>(factor ? (place % 2 == 0 ? 0x00 : 0x3C) : end);
    }
    const WeightMatrix weight = matrix_of(type, bytes, kOutputs, ref::kIntegerColumnsMax);
    ASSERT_TRUE(ref::multiplied_as_integers(weight));
    const std::vector<float> expected = multiply(ref_set(Numerics::kInt8Bf16), weight, x, kRows);
    ASSERT_NEAR(expected[0] / expected[2], 1, 1e-6);
    for (const KernelSet* const set : available_sets()) {
      if (set->numerics != Numerics::kInt8Bf16) continue;
      ASSERT_TRUE(same_bits(multiply(*set, weight, x, kRows), expected))
          << set->name << " " << info.name;
      const std::vector<float> first(x.begin(), x.begin() + ref::kIntegerColumnsMax);
      ASSERT_TRUE(same_bits(multiply(*set, weight, first, 1),
                            {expected.begin(), expected.begin() + kOutputs}))
          << set->name << " " << info.name;
    }
  }
}

TEST(IntegerGemm, LongerRowsOfCodesAreMultipliedAsFloats) {
  constexpr std::size_t kColumns = ref::kIntegerColumnsMax + 32;
  constexpr std::size_t kOutputs = 3;
  const std::vector<std::byte> bytes =
      random_weight_bytes(kOutputs * row_bytes(gguf::TensorType::kQ8_0, kColumns), 57);
  const WeightMatrix weight = matrix_of(gguf::TensorType::kQ8_0, bytes, kOutputs, kColumns);
  ASSERT_FALSE(ref::multiplied_as_integers(weight));
  const std::vector<float> x = random_values(kColumns, 59);
  for (const KernelSet* const set : available_sets()) {
    EXPECT_TRUE(
        same_bits(multiply(*set, weight, x, 1), multiply(ref_set(set->numerics), weight, x, 1)))
        << set->name;
  }
}

TEST(IntegerGemm, ARowThatIsNotFiniteGivesNanAndASmallOneZero) {
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

TEST(IntegerGemm, AWeightThatIsNotFiniteMakesItsOutputNan) {
  constexpr std::size_t kColumns = 64;
  constexpr std::size_t kOutputs = 17;
  std::vector<std::byte> bytes =
      random_weight_bytes(kOutputs * row_bytes(gguf::TensorType::kQ8_0, kColumns), 51);
  bytes[row_bytes(gguf::TensorType::kQ8_0, kColumns) * 3 + 1] = std::byte{0x7C};  // infinite scale
  bytes[row_bytes(gguf::TensorType::kQ8_0, kColumns) * 3] = std::byte{0};
  const WeightMatrix weight = matrix_of(gguf::TensorType::kQ8_0, bytes, kOutputs, kColumns);
  const std::vector<float> x = random_values(kColumns, 53);
  for (const KernelSet* const set : available_sets()) {
    if (set->numerics != Numerics::kInt8Bf16) continue;
    const std::vector<float> y = multiply(*set, weight, x, 1);
    for (std::size_t n = 0; n < kOutputs; ++n) EXPECT_EQ(std::isnan(y[n]), n == 3) << set->name;
  }
}

}  // namespace
}  // namespace pagoda::kernels
