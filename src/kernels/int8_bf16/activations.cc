// Rows of floats into activations: bf16, and the limbs of integers with their sums and their scale.
#include "kernels/int8_bf16/ints.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/round.h"
#include "kernels/ref/integer_gemm.h"

namespace pagoda::kernels::PAGODA_ISA {

#if defined(__AVX2__)

namespace {

// 64 columns in registers.
struct KBlock {
  F32x16 x[4];
};

[[gnu::always_inline]] inline KBlock load_k_block(const float* x) {
  return {{load(x), load(x + kLanes), load(x + 2 * kLanes), load(x + 3 * kLanes)}};
}

// Calls use(index, values) for all K blocks; those a row lacks are 0.
template <class Use>
[[gnu::always_inline]] inline void for_k_blocks(const float* x, std::size_t columns, Use use) {
  const std::size_t whole = columns / kBlockK;
  for (std::size_t k_block = 0; k_block < whole; ++k_block)
    use(k_block, load_k_block(x + k_block * kBlockK));
  if (whole * kBlockK == columns) return;
  alignas(64) float rest[kBlockK] = {};
  __builtin_memcpy(rest, x + whole * kBlockK, (columns - whole * kBlockK) * sizeof(float));
  use(whole, load_k_block(rest));
}

float largest_of(const float* x, std::size_t columns) {
  I32x16 bits = no_sums();
  for_k_blocks(x, columns, [&](std::size_t, const KBlock& k_block) {
    PAGODA_ISA_UNROLL for (const F32x16& values : k_block.x) bits = larger_bits(bits, values);
  });
  return __builtin_bit_cast(float, fold_max(bits));
}

[[gnu::always_inline]] inline void put_limbs(const KBlock& k_block, F32x16 inverse,
                                             Int8Limbs& limbs, std::byte* sums,
                                             std::size_t groups) {
  I32x16 high[4];
  I32x16 low[4];
  PAGODA_ISA_UNROLL for (std::size_t i = 0; i < 4; ++i) {
    const I32x16 n = nearest_integers(k_block.x[i] * inverse);
    high[i] = shift_right<kLimbBits>(n + broadcast_sum(kLimbBase / 2));
    low[i] = n - shift_left<kLimbBits>(high[i]);
  }
  const Codes64 high_bytes = to_bytes(high);
  const Codes64 low_bytes = to_bytes(low);
  store_codes(limbs.high, high_bytes);
  store_codes(limbs.low, low_bytes);
  store_limb_sums(high_bytes, low_bytes, groups, sums);
}

}  // namespace

void pack_activations(const float* x, std::size_t columns, std::byte* activations,
                      std::size_t row) {
  constexpr float kSmallest = 0x1p-100f;
  const float largest = largest_of(x, columns);
  const bool usable = largest >= kSmallest && largest < __builtin_inff();
  const float scale = usable                ? largest / static_cast<float>(kLimbsMax)
                      : largest < kSmallest ? 0.0f
                                            : __builtin_nanf("");
  const F32x16 inverse = broadcast(usable ? static_cast<float>(kLimbsMax) / largest : 0.0f);
  const ActivationLayout layout(columns);
  auto* const halves = reinterpret_cast<std::uint16_t*>(activations + layout.halves(row));
  std::byte* const limbs = activations + layout.limbs(row);
  std::byte* const sums = activations + layout.sums(row);
  for_k_blocks(x, columns, [&](std::size_t index, const KBlock& k_block) {
    const std::size_t groups = groups_of(columns) - 2 * index < 2 ? 1 : 2;
    store_bf16(halves + index * kBlockK, k_block.x[0], k_block.x[1]);
    if (groups == 2)
      store_bf16(halves + index * kBlockK + kGroupColumns, k_block.x[2], k_block.x[3]);
    put_limbs(usable ? k_block : KBlock{}, inverse,
              *reinterpret_cast<Int8Limbs*>(limbs + index * ActivationLayout::kLimbsStride),
              sums + 2 * index * sizeof(GroupSums), groups);
  });
  __builtin_memcpy(activations + layout.scale(row), &scale, sizeof(scale));
}

#else

void pack_activations(const float* x, std::size_t columns, std::byte* activations,
                      std::size_t row) {
  const ActivationLayout layout(columns);
  auto* const halves = reinterpret_cast<std::uint16_t*>(activations + layout.halves(row));
  __builtin_memset(halves, 0, layout.halves_stride());
  round_row(x, columns, halves);
  ref::to_limbs(x, columns, activations, row);
}

#endif

}  // namespace pagoda::kernels::PAGODA_ISA
