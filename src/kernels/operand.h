// A row of floats as a matmul multiplies it: an *operand*.
//
//   floats  the floats themselves
//   pairs   the row twice, for weights of two kinds, and the scales of its groups:
//             [groups][32] bf16             for weights that are floats
//             [groups] GroupDigits          for weights that are codes with scales
//             [groups] GroupScales
//
// A group is 32 columns, the last one filled up with zeros. Rows stand operand_stride() bytes
// apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::kernels {

enum class Arithmetic : std::uint8_t { kFloats, kPairs };

inline constexpr std::size_t kGroup = 32;  // columns
inline constexpr std::size_t kOperandAlignment = 64;

// x = scale * n with integers |n| <= kDigitsMax, each as 16 * high + low, low from -8 to 7.
struct GroupDigits {
  std::int8_t high[kGroup];
  std::int8_t low[kGroup];
};
inline constexpr std::int32_t kDigitsMax = 2039;  // the largest whose high digit has 8 bits

struct GroupScales {
  float scale;
  float sum;           // scale * (sum of n)
  float half_sums[2];  // the same of columns 0-15 and 16-31
};

constexpr std::size_t groups_of(std::size_t columns) { return (columns + kGroup - 1) / kGroup; }

// Where the parts of an operand of pairs begin, in bytes.
constexpr std::size_t digits_offset(std::size_t columns) { return groups_of(columns) * kGroup * 2; }
constexpr std::size_t scales_offset(std::size_t columns) {
  return digits_offset(columns) + groups_of(columns) * sizeof(GroupDigits);
}

constexpr std::size_t operand_stride(Arithmetic arithmetic, std::size_t columns) {
  const std::size_t bytes = arithmetic == Arithmetic::kFloats
                                ? columns * sizeof(float)
                                : scales_offset(columns) + groups_of(columns) * sizeof(GroupScales);
  return (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
}

}  // namespace pagoda::kernels
