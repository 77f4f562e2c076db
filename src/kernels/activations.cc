#include "kernels/activations.h"

#include <cstring>

namespace pagoda::kernels {

void copy_activations(Numerics numerics, std::size_t columns, const std::byte* from,
                      std::size_t from_row, std::byte* to, std::size_t to_row) {
  if (numerics == Numerics::kFp32) {
    const std::size_t stride = fp32_activation_stride(columns);
    std::memcpy(to + to_row * stride, from + from_row * stride, stride);
    return;
  }
  const ActivationLayout layout(columns);
  std::memcpy(to + layout.halves(to_row), from + layout.halves(from_row), layout.halves_stride());
  for (std::size_t k_block = 0; k_block < k_blocks_of(columns); ++k_block) {
    const std::size_t at = k_block * ActivationLayout::kLimbsStride;
    std::memcpy(to + layout.limbs(to_row) + at, from + layout.limbs(from_row) + at,
                sizeof(Int8Limbs));
  }
  std::memcpy(to + layout.sums(to_row), from + layout.sums(from_row), layout.sums_stride());
  std::memcpy(to + layout.scale(to_row), from + layout.scale(from_row), sizeof(float));
}

}  // namespace pagoda::kernels
