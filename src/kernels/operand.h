// A row of floats as a matmul multiplies it: an *operand*.
//
//   floats  the floats themselves
//   pairs   the row twice, for weights of two kinds:
//             [groups][32] bf16     for weights that are floats
//             [steps] StepDigits    for weights that are integers on a grid,
//             [groups] GroupSums      with sums of the digits
//             float                   and what an integer stands for
//
// A group is 32 columns and a step two groups; what a row lacks is zero. Rows stand
// operand_stride() bytes apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::kernels {

enum class Arithmetic : std::uint8_t { kFloats, kPairs };

inline constexpr std::size_t kGroup = 32;  // columns
inline constexpr std::size_t kStep = 64;   // columns
inline constexpr std::size_t kOperandAlignment = 64;

// x = scale * n with integers |n| <= kDigitsMax, each as 256 * high + low.
struct StepDigits {
  std::int8_t high[kStep];
  std::int8_t low[kStep];
};
inline constexpr int kDigitBits = 8;
inline constexpr std::int32_t kDigitBase = 1 << kDigitBits;
inline constexpr std::int32_t kDigitsMax = 127 * kDigitBase + 127;

// Of the digits of columns 0-15 and 16-31.
struct GroupSums {
  std::int16_t high[2];
  std::int16_t low[2];
};

constexpr std::size_t groups_of(std::size_t columns) { return (columns + kGroup - 1) / kGroup; }
constexpr std::size_t steps_of(std::size_t columns) { return (columns + kStep - 1) / kStep; }

// Where the parts of an operand of pairs begin, in bytes.
constexpr std::size_t digits_offset(std::size_t columns) {
  return groups_of(columns) * kGroup * sizeof(std::uint16_t);
}
constexpr std::size_t sums_offset(std::size_t columns) {
  return digits_offset(columns) + steps_of(columns) * sizeof(StepDigits);
}
constexpr std::size_t scale_offset(std::size_t columns) {
  return sums_offset(columns) + groups_of(columns) * sizeof(GroupSums);
}

constexpr std::size_t operand_stride(Arithmetic arithmetic, std::size_t columns) {
  const std::size_t bytes = arithmetic == Arithmetic::kFloats
                                ? columns * sizeof(float)
                                : scale_offset(columns) + sizeof(float);
  return (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
}

}  // namespace pagoda::kernels
