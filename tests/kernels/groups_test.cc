// Group sums: codes stand for the weights of the file, digits for the row, and their product is
// right within the bounds both have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/large_array.h"
#include "kernels/random_values.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/group_codes.h"
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

TEST(Groups, CodesStandForWhatTheFileSays) {
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

struct Digits {
  std::vector<double> values;  // scale * (16 * high + low)
  std::vector<double> steps;   // the group's scale
};

Digits digits_of(const KernelSet& set, const std::vector<float>& x) {
  LargeArray<std::byte> operand(operand_stride(Arithmetic::kPairs, x.size()));
  // In two parts, as those who compute a row piece by piece do.
  const std::size_t middle = x.size() / 2 / kGroup * kGroup;
  set.to_operand(x.data(), x.size(), 0, middle, operand.data());
  set.to_operand(x.data() + middle, x.size(), middle, x.size(), operand.data());
  Digits result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    GroupDigits digits;
    GroupScales scales;
    std::memcpy(&digits,
                operand.data() + digits_offset(x.size()) + i / kGroup * sizeof(GroupDigits),
                sizeof(digits));
    std::memcpy(&scales,
                operand.data() + scales_offset(x.size()) + i / kGroup * sizeof(GroupScales),
                sizeof(scales));
    const int integer = 16 * digits.high[i % kGroup] + digits.low[i % kGroup];
    result.values.push_back(double{scales.scale} * integer);
    result.steps.push_back(scales.scale);
  }
  return result;
}

TEST(Groups, DigitsAreWithinHalfAStepOfTheRow) {
  for (const std::size_t columns : {1, 31, 32, 33, 100, 576}) {
    const std::vector<float> x = random_values(columns, 31);
    for (const KernelSet* const set : available_sets()) {
      if (set->arithmetic != Arithmetic::kPairs) continue;
      const Digits digits = digits_of(*set, x);
      for (std::size_t i = 0; i < columns; ++i) {
        const std::size_t group = i / kGroup * kGroup;
        float largest = 0;
        for (std::size_t k = group; k < std::min(group + kGroup, columns); ++k) {
          largest = std::max(largest, std::abs(x[k]));
        }
        ASSERT_NEAR(digits.steps[i] * kDigitsMax, largest, largest * 1e-6) << set->name;
        ASSERT_NEAR(digits.values[i], x[i], digits.steps[i] * 0.501) << set->name << " " << i;
      }
    }
  }
}

std::vector<float> multiply(const KernelSet& set, gguf::TensorType type, std::size_t outputs,
                            const std::vector<std::byte>& bytes, const std::vector<float>& x) {
  WeightMatrix weight = {type, bytes.data(), outputs, x.size(), row_bytes(type, x.size()), nullptr};
  LargeArray<std::byte> packed(set.packed_bytes(weight));
  set.pack(weight, 0, outputs, packed.data());
  weight.packed = packed.data();
  LargeArray<std::byte> operand(operand_stride(set.arithmetic, x.size()));
  set.to_operand(x.data(), x.size(), 0, x.size(), operand.data());
  LargeArray<std::byte> scratch(set.matmul_scratch(x.size()));
  std::vector<float> y(outputs);
  set.matmul({.x = operand.data(),
              .rows = 1,
              .weight = weight,
              .y = y.data(),
              .y_stride = outputs,
              .accumulate = false},
             0, outputs, scratch.data());
  return y;
}

TEST(Groups, ProductsAreWithinTheRoundingOfTheirGroups) {
  constexpr std::size_t kColumns = 1024;
  constexpr std::size_t kOutputs = 21;
  const KernelSet& set = ref_set(Arithmetic::kPairs);
  const std::vector<float> x = random_values(kColumns, 41);
  const Digits digits = digits_of(set, x);
  for (const gguf::TensorType type : coded_types()) {
    const std::size_t bytes_of_row = row_bytes(type, kColumns);
    const std::vector<std::byte> bytes = random_weight_bytes(kOutputs * bytes_of_row, 43);
    const std::vector<float> y = multiply(set, type, kOutputs, bytes, x);
    std::vector<float> weights(kColumns);
    for (std::size_t n = 0; n < kOutputs; ++n) {
      ref::dequantise_row(type, bytes.data() + n * bytes_of_row, weights.data(), kColumns);
      double exact = 0;
      double magnitude = 0;
      for (std::size_t k = 0; k < kColumns; ++k) {
        const ref::GroupCodes group =
            ref::read_codes(type, bytes.data() + n * bytes_of_row, k / kGroup * kGroup);
        exact += digits.values[k] * weights[k];
        // Codes and minima are added apart: their magnitudes count, not their difference.
        magnitude += std::abs(digits.values[k]) *
                     (std::abs(double{group.scales[k % kGroup / 16]} * group.codes[k % kGroup]) +
                      std::abs(double{group.minima[k % kGroup / 16]}));
      }
      // Two roundings of the sum for each group (64 where each 16 columns are one), and of factors.
      ASSERT_NEAR(y[n], exact, magnitude * (2 * 64 + 3) * 0x1p-24)
          << gguf::tensor_type_info(type).name << " output " << n;
    }
  }
}

TEST(Groups, ARowThatIsNotFiniteGivesNanAndASmallOneZero) {
  constexpr std::size_t kColumns = 64;
  constexpr std::size_t kOutputs = 17;
  const std::vector<std::byte> bytes =
      random_weight_bytes(kOutputs * row_bytes(gguf::TensorType::kQ4_1, kColumns), 47);
  for (const KernelSet* const set : available_sets()) {
    for (const float odd : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> x = random_values(kColumns, 49);
      x[37] = odd;
      for (const float y : multiply(*set, gguf::TensorType::kQ4_1, kOutputs, bytes, x)) {
        ASSERT_FALSE(std::isfinite(y)) << set->name;
      }
    }
    const std::vector<float> tiny(kColumns, 0x1p-130f);
    for (const float y : multiply(*set, gguf::TensorType::kQ4_1, kOutputs, bytes, tiny)) {
      ASSERT_LT(std::abs(y), 0x1p-100f) << set->name;
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
