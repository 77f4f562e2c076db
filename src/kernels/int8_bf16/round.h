// A row of floats rounded to bf16.
#pragma once

#include "kernels/int8_bf16/simd.h"

namespace pagoda::kernels::PAGODA_ISA {

inline void round_row(const float* values, std::size_t count, std::uint16_t* halves) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_bf16(halves + i, load(values + i));
  if (i == count) return;
  alignas(64) float rest[kLanes] = {};
  alignas(64) std::uint16_t rounded[kLanes];
  __builtin_memcpy(rest, values + i, (count - i) * sizeof(float));
  store_bf16(rounded, load(rest));
  __builtin_memcpy(halves + i, rounded, (count - i) * 2);
}

}  // namespace pagoda::kernels::PAGODA_ISA
