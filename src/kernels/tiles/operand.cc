// Rows of floats into operands: bf16, and the digits of integers with their sums and their scale.
#include "kernels/ref/grid.h"
#include "kernels/tiles/kernels.h"
#include "kernels/tiles/round.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

#if defined(__AVX512F__)

namespace {

// 64 columns in registers.
struct Step {
  F32x16 x[4];
};

[[gnu::always_inline]] inline Step load_step(const float* x) {
  return {{load(x), load(x + kLanes), load(x + 2 * kLanes), load(x + 3 * kLanes)}};
}

// Calls use(step, values) for all steps; those a row lacks are 0.
template <class Use>
[[gnu::always_inline]] inline void for_steps(const float* x, std::size_t columns, Use use) {
  const std::size_t whole = columns / kStep;
  for (std::size_t step = 0; step < whole; ++step) use(step, load_step(x + step * kStep));
  if (whole * kStep == columns) return;
  alignas(64) float rest[kStep] = {};
  __builtin_memcpy(rest, x + whole * kStep, (columns - whole * kStep) * sizeof(float));
  use(whole, load_step(rest));
}

// As integers, magnitudes are in order and NaN is above all.
float largest_of(const float* x, std::size_t columns) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i largest = _mm512_setzero_si512();
  for_steps(x, columns, [&](std::size_t, const Step& step) {
    PAGODA_TILE_UNROLL for (const F32x16& values : step.x) {
      largest =
          _mm512_max_epu32(largest, _mm512_and_si512(_mm512_castps_si512(values.v), magnitude));
    }
  });
  return __builtin_bit_cast(float, _mm512_reduce_max_epu32(largest));
}

// 64 integers of 8 bits, given as 4 x 16.
[[gnu::always_inline]] inline __m512i to_bytes(const __m512i (&n)[4]) {
  // Packing keeps to lanes of 128 bits: fours come out of order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(
      order, _mm512_packs_epi16(_mm512_packs_epi32(n[0], n[1]), _mm512_packs_epi32(n[2], n[3])));
}

// The sums of 16 digits each, of two groups.
[[gnu::always_inline]] inline __m128i sums_of(__m512i high, __m512i low) {
  const __m512i ones = _mm512_set1_epi8(1);
  const __m512i zero = _mm512_setzero_si512();
  const __m512i high_fours = _mm512_dpbusd_epi32(zero, ones, high);
  const __m512i low_fours = _mm512_dpbusd_epi32(zero, ones, low);
  const __m512i eights = _mm512_add_epi32(_mm512_unpacklo_epi32(high_fours, low_fours),
                                          _mm512_unpackhi_epi32(high_fours, low_fours));
  const __m512i all = _mm512_add_epi32(eights, _mm512_shuffle_epi32(eights, _MM_PERM_BADC));
  const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 8, 12, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm256_castsi256_si128(_mm512_cvtepi32_epi16(_mm512_permutexvar_epi32(order, all)));
}

[[gnu::always_inline]] inline void put_digits(const Step& step, F32x16 inverse, StepDigits& digits,
                                              std::byte* sums, std::size_t sums_bytes) {
  const __m512i half = _mm512_set1_epi32(kDigitBase / 2);
  __m512i high[4];
  __m512i low[4];
  PAGODA_TILE_UNROLL for (std::size_t i = 0; i < 4; ++i) {
    const __m512i n = _mm512_cvtps_epi32((step.x[i] * inverse).v);
    high[i] = _mm512_srai_epi32(_mm512_add_epi32(n, half), kDigitBits);
    low[i] = _mm512_sub_epi32(n, _mm512_slli_epi32(high[i], kDigitBits));
  }
  const __m512i high_bytes = to_bytes(high);
  const __m512i low_bytes = to_bytes(low);
  _mm512_store_si512(digits.high, high_bytes);
  _mm512_store_si512(digits.low, low_bytes);
  const __m128i both = sums_of(high_bytes, low_bytes);
  if (sums_bytes == sizeof(both)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), both);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), both);
  }
}

}  // namespace

void to_operand(const float* x, std::size_t columns, std::byte* operands, std::size_t row) {
  constexpr float kSmallest = 0x1p-100f;
  const float largest = largest_of(x, columns);
  const bool usable = largest >= kSmallest && largest < __builtin_inff();
  const float scale = usable                ? largest / static_cast<float>(kDigitsMax)
                      : largest < kSmallest ? 0.0f
                                            : __builtin_nanf("");
  const F32x16 inverse = broadcast(usable ? static_cast<float>(kDigitsMax) / largest : 0.0f);
  const OperandLayout layout(columns);
  auto* const halves = reinterpret_cast<std::uint16_t*>(operands + layout.halves(row));
  std::byte* const digits = operands + layout.digits(row);
  std::byte* const sums = operands + layout.sums(row);
  for_steps(x, columns, [&](std::size_t index, const Step& step) {
    const std::size_t groups = groups_of(columns) - 2 * index < 2 ? 1 : 2;
    store_bf16(halves + index * kStep, step.x[0], step.x[1]);
    if (groups == 2) store_bf16(halves + index * kStep + kGroup, step.x[2], step.x[3]);
    put_digits(usable ? step : Step{}, inverse,
               *reinterpret_cast<StepDigits*>(digits + index * OperandLayout::kDigitsStride),
               sums + 2 * index * sizeof(GroupSums), groups * sizeof(GroupSums));
  });
  __builtin_memcpy(operands + layout.scale(row), &scale, sizeof(scale));
}

#else

void to_operand(const float* x, std::size_t columns, std::byte* operands, std::size_t row) {
  const OperandLayout layout(columns);
  auto* const halves = reinterpret_cast<std::uint16_t*>(operands + layout.halves(row));
  __builtin_memset(halves, 0, layout.halves_stride());
  round_row(x, columns, halves);
  ref::to_digits(x, columns, operands, row);
}

#endif

}  // namespace pagoda::kernels::PAGODA_TILE_SET
