// Rows of a product of tiles (kernels/int8_bf16/amx_tile.h) where the CPU has no unit for it.
#pragma once

#include "kernels/int8_bf16/simd.h"
#include "kernels/int8_bf16/tile_view.h"

namespace pagoda::kernels::PAGODA_ISA {

// Loads the even, or the odd, elements of 32 bf16 as floats.
inline F32x16 load_evens(const std::byte* p) {
  F32x16 even;
  F32x16 odd;
  load_bf16_pairs(p, even, odd);
  return even;
}
inline F32x16 load_odds(const std::byte* p) {
  F32x16 even;
  F32x16 odd;
  load_bf16_pairs(p, even, odd);
  return odd;
}

// `Rows` rows of c. Lanes of b beyond its columns are computed and never stored.
template <int Rows>
[[gnu::always_inline]] inline void dot_rows(std::byte* c, TileView a, TileView b,
                                            std::size_t pairs) {
  // A factor of all lanes comes from memory at no cost, as a float.
  alignas(64) float left_even[Rows][kLanes];
  alignas(64) float left_odd[Rows][kLanes];
  F32x16 even[Rows];
  F32x16 odd[Rows];
  PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
    store(left_even[r], load_evens(a.row(static_cast<std::size_t>(r))));
    store(left_odd[r], load_odds(a.row(static_cast<std::size_t>(r))));
    even[r] = odd[r] = broadcast(0.0f);
  }
  for (std::size_t k = 0; k < pairs; ++k) {
    const F32x16 b_even = load_evens(b.row(k));
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      even[r] = without_subnormals(fma(broadcast(left_even[r][k]), b_even, even[r]));
    }
    const F32x16 b_odd = load_odds(read_again(b.row(k)));
    PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
      odd[r] = without_subnormals(fma(broadcast(left_odd[r][k]), b_odd, odd[r]));
    }
  }
  PAGODA_ISA_UNROLL for (int r = 0; r < Rows; ++r) {
    float* const row = reinterpret_cast<float*>(c + 64 * r);
    store(row, without_subnormals(load(row) + without_subnormals(even[r] + odd[r])));
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA
