// Rows of floats as a matmul multiplies them: *operands*.
//
//   floats  the floats themselves, row after row
//   pairs   every row twice, for weights of two kinds. Rows stand in blocks of 16, and what the
//           matrix unit multiplies at once stands together:
//             [16][groups][32] bf16     for weights that are floats
//             [steps][16] StepDigits    for weights that are integers on a grid,
//             [16][groups] GroupSums      with sums of the digits
//             [16] float                  and what an integer stands for
//
// A group is 32 columns and a step two groups; what a row lacks is zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::kernels {

enum class Arithmetic : std::uint8_t { kFloats, kPairs };

inline constexpr std::size_t kGroup = 32;         // columns
inline constexpr std::size_t kStep = 64;          // columns
inline constexpr std::size_t kOperandBlock = 16;  // rows
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

// Where the parts of a row begin among operands of pairs, in bytes.
class OperandLayout {
 public:
  constexpr explicit OperandLayout(std::size_t columns)
      : halves_stride_(groups_of(columns) * kGroup * 2),
        digits_(kOperandBlock * halves_stride_),
        sums_stride_(groups_of(columns) * sizeof(GroupSums)),
        sums_(digits_ + steps_of(columns) * kDigitsStride),
        scales_(sums_ + kOperandBlock * sums_stride_),
        block_bytes_((scales_ + kOperandBlock * sizeof(float) + kOperandAlignment - 1) /
                     kOperandAlignment * kOperandAlignment) {}

  static constexpr std::size_t kDigitsStride = kOperandBlock * sizeof(StepDigits);  // step to step

  constexpr std::size_t block_bytes() const { return block_bytes_; }
  constexpr std::size_t halves_stride() const { return halves_stride_; }  // row to row in a block
  constexpr std::size_t halves(std::size_t row) const {
    return block(row) + row % kOperandBlock * halves_stride_;
  }
  constexpr std::size_t digits(std::size_t row) const {
    return block(row) + digits_ + row % kOperandBlock * sizeof(StepDigits);
  }
  constexpr std::size_t sums_stride() const { return sums_stride_; }
  constexpr std::size_t sums(std::size_t row) const {
    return block(row) + sums_ + row % kOperandBlock * sums_stride_;
  }
  constexpr std::size_t scale(std::size_t row) const {
    return block(row) + scales_ + row % kOperandBlock * sizeof(float);
  }

 private:
  constexpr std::size_t block(std::size_t row) const { return row / kOperandBlock * block_bytes_; }

  std::size_t halves_stride_;
  std::size_t digits_;
  std::size_t sums_stride_;
  std::size_t sums_;
  std::size_t scales_;
  std::size_t block_bytes_;
};

// Of floats, from row to row.
constexpr std::size_t float_operand_stride(std::size_t columns) {
  return (columns * sizeof(float) + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
}

constexpr std::size_t operands_bytes(Arithmetic arithmetic, std::size_t columns, std::size_t rows) {
  if (arithmetic == Arithmetic::kFloats) return rows * float_operand_stride(columns);
  return (rows + kOperandBlock - 1) / kOperandBlock * OperandLayout(columns).block_bytes();
}

}  // namespace pagoda::kernels
