#include "kernels/hadamard.h"

#include <bit>
#include <cmath>

#include "base/assert.h"

namespace pagoda::kernels {
namespace {

[[gnu::always_inline]] inline void transform(float* x, std::size_t block) {
  for (std::size_t apart = 1; apart < block; apart *= 2) {
    for (std::size_t first = 0; first < block; first += 2 * apart) {
      for (std::size_t i = first; i < first + apart; ++i) {
        const float a = x[i];
        const float b = x[i + apart];
        x[i] = a + b;
        x[i + apart] = a - b;
      }
    }
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(block));
  for (std::size_t i = 0; i < block; ++i) x[i] *= scale;
}

// Blocks of a size that the compiler knows are transformed faster.
template <std::size_t Block>
void transform_all(float* values, std::size_t count) {
  for (std::size_t at = 0; at < count; at += Block) transform(values + at, Block);
}

}  // namespace

void hadamard(float* values, std::size_t count, std::size_t block) {
  ASSERT(std::has_single_bit(block) && count % block == 0, "blocks are whole");
  switch (block) {
    case 128:
      return transform_all<128>(values, count);
    case 64:
      return transform_all<64>(values, count);
    case 32:
      return transform_all<32>(values, count);
    default:
      for (std::size_t at = 0; at < count; at += block) transform(values + at, block);
  }
}

}  // namespace pagoda::kernels
