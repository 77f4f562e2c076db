// Rows of floats into operands: bf16, and digits with the scales of their groups.
#include "kernels/tiles/digits.h"
#include "kernels/tiles/kernels.h"

namespace pagoda::kernels::PAGODA_TILE_SET {
namespace {

// 32 columns; where a row ends within them, the rest is 0.
void put_group(const float* x, std::size_t columns, std::size_t index, std::byte* operand) {
  const F32x16 first = load(x);
  const F32x16 second = load(x + kLanes);
  store_bf16(reinterpret_cast<std::uint16_t*>(operand) + index * kGroup, first, second);
  put_digits(first, second, reinterpret_cast<GroupDigits*>(operand + digits_offset(columns))[index],
             reinterpret_cast<GroupScales*>(operand + scales_offset(columns))[index]);
}

}  // namespace

void to_operand(const float* x, std::size_t columns, std::size_t begin, std::size_t end,
                std::byte* operand) {
  std::size_t column = begin;
  for (; column + kGroup <= end; column += kGroup) {
    put_group(x + (column - begin), columns, column / kGroup, operand);
  }
  if (column == end) return;
  alignas(64) float rest[kGroup] = {};
  __builtin_memcpy(rest, x + (column - begin), (end - column) * sizeof(float));
  put_group(rest, columns, column / kGroup, operand);
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET
