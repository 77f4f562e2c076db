// Rows of floats into operands: bf16, and the digits of integers with their sums and their scale.
#include "kernels/ref/grid.h"
#include "kernels/tiles/ints.h"
#include "kernels/tiles/kernels.h"
#include "kernels/tiles/round.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

#if defined(__AVX2__)

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

float largest_of(const float* x, std::size_t columns) {
  I32x16 bits = no_sums();
  for_steps(x, columns, [&](std::size_t, const Step& step) {
    PAGODA_TILE_UNROLL for (const F32x16& values : step.x) bits = larger_bits(bits, values);
  });
  return __builtin_bit_cast(float, fold_max(bits));
}

[[gnu::always_inline]] inline void put_digits(const Step& step, F32x16 inverse, StepDigits& digits,
                                              std::byte* sums, std::size_t groups) {
  I32x16 high[4];
  I32x16 low[4];
  PAGODA_TILE_UNROLL for (std::size_t i = 0; i < 4; ++i) {
    const I32x16 n = nearest_integers(step.x[i] * inverse);
    high[i] = shift_right<kDigitBits>(n + broadcast_sum(kDigitBase / 2));
    low[i] = n - shift_left<kDigitBits>(high[i]);
  }
  const Codes64 high_bytes = to_bytes(high);
  const Codes64 low_bytes = to_bytes(low);
  store_codes(digits.high, high_bytes);
  store_codes(digits.low, low_bytes);
  store_digit_sums(high_bytes, low_bytes, groups, sums);
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
               sums + 2 * index * sizeof(GroupSums), groups);
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
