// Rows of floats as a GEMM multiplies them: *packed activations*.
//
//   fp32       the floats themselves, row after row
//   int8_bf16  every row twice, for weights of two kinds. Rows stand in blocks of 16, and what the
//              matrix unit multiplies at once stands together:
//                [16][groups][32] bf16     for weights that are floats
//                [K blocks][16] Int8Limbs  for weights that are integers on the grid of a row,
//                [16][groups] GroupSums      with sums of the limbs
//                [16] float                  and what an integer stands for
//
// A group is 32 columns and a K block two groups; what a row lacks is zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::kernels {

enum class Numerics : std::uint8_t { kFp32, kInt8Bf16 };

inline constexpr std::size_t kGroupColumns = 32;     // columns
inline constexpr std::size_t kBlockK = 64;           // columns
inline constexpr std::size_t kActivationBlock = 16;  // rows
inline constexpr std::size_t kActivationAlignment = 64;

// x = scale * n with integers |n| <= kLimbsMax, each as 256 * high + low.
struct Int8Limbs {
  std::int8_t high[kBlockK];
  std::int8_t low[kBlockK];
};
inline constexpr int kLimbBits = 8;
inline constexpr std::int32_t kLimbBase = 1 << kLimbBits;
inline constexpr std::int32_t kLimbsMax = 127 * kLimbBase + 127;

// The sums of the limbs of columns 0-15 and 16-31.
struct GroupSums {
  std::int16_t high[2];
  std::int16_t low[2];
};

constexpr std::size_t groups_of(std::size_t columns) {
  return (columns + kGroupColumns - 1) / kGroupColumns;
}
constexpr std::size_t k_blocks_of(std::size_t columns) { return (columns + kBlockK - 1) / kBlockK; }

// The offsets of a row's parts among activations of int8_bf16, in bytes.
class ActivationLayout {
 public:
  constexpr explicit ActivationLayout(std::size_t columns)
      : halves_stride_(groups_of(columns) * kGroupColumns * 2),
        limbs_(kActivationBlock * halves_stride_),
        sums_stride_(groups_of(columns) * sizeof(GroupSums)),
        sums_(limbs_ + k_blocks_of(columns) * kLimbsStride),
        scales_(sums_ + kActivationBlock * sums_stride_),
        block_bytes_((scales_ + kActivationBlock * sizeof(float) + kActivationAlignment - 1) /
                     kActivationAlignment * kActivationAlignment) {}

  static constexpr std::size_t kLimbsStride =
      kActivationBlock * sizeof(Int8Limbs);  // K block to K block

  constexpr std::size_t block_bytes() const { return block_bytes_; }
  constexpr std::size_t halves_stride() const { return halves_stride_; }  // row to row in a block
  constexpr std::size_t halves(std::size_t row) const {
    return block(row) + row % kActivationBlock * halves_stride_;
  }
  constexpr std::size_t limbs(std::size_t row) const {
    return block(row) + limbs_ + row % kActivationBlock * sizeof(Int8Limbs);
  }
  constexpr std::size_t sums_stride() const { return sums_stride_; }
  constexpr std::size_t sums(std::size_t row) const {
    return block(row) + sums_ + row % kActivationBlock * sums_stride_;
  }
  constexpr std::size_t scale(std::size_t row) const {
    return block(row) + scales_ + row % kActivationBlock * sizeof(float);
  }

 private:
  constexpr std::size_t block(std::size_t row) const {
    return row / kActivationBlock * block_bytes_;
  }

  std::size_t halves_stride_;
  std::size_t limbs_;
  std::size_t sums_stride_;
  std::size_t sums_;
  std::size_t scales_;
  std::size_t block_bytes_;
};

// The bytes from row to row of fp32 activations.
constexpr std::size_t fp32_activation_stride(std::size_t columns) {
  return (columns * sizeof(float) + kActivationAlignment - 1) / kActivationAlignment *
         kActivationAlignment;
}

constexpr std::size_t activation_bytes(Numerics numerics, std::size_t columns, std::size_t rows) {
  if (numerics == Numerics::kFp32) return rows * fp32_activation_stride(columns);
  return (rows + kActivationBlock - 1) / kActivationBlock * ActivationLayout(columns).block_bytes();
}

// Copies a row from activations into others of as many columns.
void copy_activations(Numerics numerics, std::size_t columns, const std::byte* from,
                      std::size_t from_row, std::byte* to, std::size_t to_row);

}  // namespace pagoda::kernels
