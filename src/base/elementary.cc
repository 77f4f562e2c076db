#include "base/elementary.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/assert.h"

namespace pagoda {
namespace {

// Wide is a sum of two doubles of which the second is at most half an ulp of the first: 106 bits.
struct Wide {
  double high;
  double low = 0;
};

constexpr Wide kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Wide kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

// The sum is exact where |a| >= |b|.
Wide sum_of_ordered(double a, double b) {
  const double high = a + b;
  return {high, b - (high - a)};
}

// The sum is exact.
Wide sum(double a, double b) {
  const double high = a + b;
  const double part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}

// Splits the mantissa into its upper 26 bits and the others; |a| < 2^996.
Wide split(double a) {
  const double shifted = a * 0x1.0000002p27;
  const double high = shifted - (shifted - a);
  return {high, a - high};
}

// The product is exact: a product of halves has at most 53 bits.
Wide product(double a, double b) {
  const double high = a * b;
  const Wide x = split(a);
  const Wide y = split(b);
  return {high, ((x.high * y.high - high) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

// The operators below are within 2^-102 of the exact results.
Wide operator+(Wide a, Wide b) {
  const Wide high = sum(a.high, b.high);
  const Wide low = sum(a.low, b.low);
  const Wide all = sum_of_ordered(high.high, high.low + low.high);
  return sum_of_ordered(all.high, all.low + low.low);
}

Wide operator-(Wide a) { return {-a.high, -a.low}; }

Wide operator*(Wide a, Wide b) {
  const Wide exact = product(a.high, b.high);
  return sum_of_ordered(exact.high, exact.low + (a.high * b.low + a.low * b.high));
}

Wide operator/(Wide a, Wide b) {
  const double first = a.high / b.high;
  const Wide left = a + -(b * Wide{first});
  const double second = left.high / b.high;
  const Wide rest = left + -(b * Wide{second});
  return sum_of_ordered(first, second) + Wide{rest.high / b.high};
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// log x = e ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^e, m from sqrt(1/2) to sqrt(2).
Wide wide_log(double x) {
  constexpr int kTerms = 23;  // of s^2 < 0.0295: the terms left out are below 2^-115
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (mantissa > 1.4142135623730951) {
    mantissa /= 2;
    ++exponent;
  }
  const Wide s = Wide{mantissa - 1} / sum(mantissa, 1.0);
  const Wide square = s * s;
  Wide series = {0};
  for (int term = kTerms - 1; term >= 0; --term) {
    series = series * square + Wide{1} / Wide{2.0 * term + 1};
  }
  return Wide{2} * s * series + Wide{static_cast<double>(exponent)} * kLn2;
}

// e^x = 2^n e^r, n the integer nearest to x / ln 2; e^r by its series.
double rounded_exp(Wide x) {
  constexpr int kTerms = 25;  // |r| < 0.347: the terms left out are below 2^-120
  if (x.high > 710) return std::numeric_limits<double>::infinity();
  if (x.high < -746) return 0;
  const double n = std::floor(x.high / kLn2.high + 0.5);
  const Wide r = x + -(Wide{n} * kLn2);
  Wide series = {1};
  for (int term = kTerms; term > 0; --term) {
    series = Wide{1} + series * r / Wide{static_cast<double>(term)};
  }
  // Scaling takes two multiplications, so that a result becomes subnormal or overflows in the
  // second alone.
  const int half = static_cast<int>(n) / 2;
  return series.high * power_of_two(half) * power_of_two(static_cast<int>(n) - half);
}

// These are the bits of 2 / pi behind the point, after a word of zeros.
constexpr std::array<std::uint64_t, 20> kTwoOverPi = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB};

// Returns the 64 bits from bit `first` on.
std::uint64_t bits_of_two_over_pi(std::size_t first) {
  const std::size_t word = first / 64;
  const std::size_t shift = first % 64;
  if (shift == 0) return kTwoOverPi[word];
  return kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> (64 - shift);
}

// The angle is quadrant * pi / 2 + rest with |rest| <= pi / 4. Quadrants count modulo 4.
struct Reduced {
  std::uint32_t quadrant;
  Wide rest;
};

// Here angle > pi / 4 and angle = m 2^e with an integer m. Multiples of 4 in m 2^e 2 / pi do not
// matter: the product of m and 192 bits of 2 / pi, of which the first counts 2 once it is
// multiplied, has two bits before the point and 190 behind, of which m < 2^53 makes some 137 right.
// No double is nearer than 2^-62 to a multiple of pi / 2, so that 75 bits of the rest are right.
Reduced reduce(double angle) {
  __extension__ using Product = unsigned __int128;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(angle);
  const std::uint64_t m = (bits & 0xFFFFFFFFFFFFFu) | 0x10000000000000u;
  const int e = static_cast<int>(bits >> 52) - 1075;
  const auto first = static_cast<std::size_t>(e + 62);
  const Product low = Product{m} * bits_of_two_over_pi(first + 128);
  const Product middle =
      Product{m} * bits_of_two_over_pi(first + 64) + static_cast<std::uint64_t>(low >> 64);
  const std::uint64_t high =
      m * bits_of_two_over_pi(first) + static_cast<std::uint64_t>(middle >> 64);
  // The quadrant has two bits, the fraction follows. A fraction from one half on belongs to the
  // next quadrant and is reduced by one.
  const Product upper = Product{high} << 64 | static_cast<std::uint64_t>(middle);
  const auto lowest = static_cast<std::uint64_t>(low);
  Product fraction = upper << 2 | lowest >> 62;
  std::uint64_t tail = lowest << 2;
  const bool negative = (high >> 61 & 1) != 0;
  const auto quadrant = static_cast<std::uint32_t>(high >> 62) + (negative ? 1u : 0u);
  if (negative) {
    fraction = ~fraction + (tail == 0 ? 1 : 0);
    tail = ~tail + 1;
  }
  // Takes 128 bits from the first set bit on.
  int zeros = std::countl_zero(static_cast<std::uint64_t>(fraction >> 64));
  if (zeros == 64) zeros += std::countl_zero(static_cast<std::uint64_t>(fraction));
  if (zeros > 0) {
    const Product shifted_in = Product{tail} << 64 >> (128 - zeros);
    fraction = fraction << zeros | shifted_in;
  }
  const auto leading = static_cast<std::uint64_t>(fraction >> 75);
  const auto following = static_cast<std::uint64_t>(fraction >> 11);
  const double unit = power_of_two(-53 - zeros);
  const Wide turns = sum_of_ordered(static_cast<double>(leading) * unit,
                                    static_cast<double>(following) * 0x1p-64 * unit);
  const Wide rest = turns * kHalfPi;
  return {quadrant, negative ? -rest : rest};
}

// sum of terms[i] * x^i
template <std::size_t kCount>
double polynomial(const std::array<double, kCount>& terms, double x) {
  double value = terms[kCount - 1];
  for (std::size_t i = kCount - 1; i-- > 0;) value = value * x + terms[i];
  return value;
}

// These are 1 / n! of every second n, from 3 and from 4 on, with alternating signs.
constexpr std::array<double, 8> kSineTerms = {
    -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
    -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
constexpr std::array<double, 8> kCosineTerms = {
    1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
    1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};

SineCosine of_rest(Wide rest) {
  const double x = rest.high;
  const Wide square = product(x, x);
  const double z = square.high;
  const double sine_tail = x * z * polynomial(kSineTerms, z) + rest.low * (1 - z / 2);
  const double most = 1 - z / 2;  // the leading terms of the cosine
  const double cosine_tail =
      ((1 - most) - z / 2) + (z * z * polynomial(kCosineTerms, z) - square.low / 2 - x * rest.low);
  return {x + sine_tail, most + cosine_tail};
}

}  // namespace

SineCosine sine_cosine(double angle) {
  const double size = std::fabs(angle);
  if (!std::isfinite(angle)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  const Reduced reduced = size <= kHalfPi.high / 2 ? Reduced{0, {size}} : reduce(size);
  const SineCosine of = of_rest(reduced.rest);
  const bool crossed = reduced.quadrant % 2 != 0;
  const double sine = crossed ? of.cosine : of.sine;
  const double cosine = crossed ? of.sine : of.cosine;
  const bool sine_turned = (reduced.quadrant & 2) != 0;
  const bool cosine_turned = ((reduced.quadrant + 1) & 2) != 0;
  return {.sine = sine_turned != std::signbit(angle) ? -sine : sine,
          .cosine = cosine_turned ? -cosine : cosine};
}

double natural_log(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(x)) return x;
  return wide_log(x).high;
}

double power(double base, double exponent) {
  ASSERT(base > 0 && std::isfinite(base) && std::isfinite(exponent), "what power() is defined for");
  const Wide log = wide_log(base);
  const double size = log.high * exponent;
  // These bounds keep the multiplication below from overflowing; a size of 0 gives 1.
  if (size == 0) return 1;
  if (size > 1000) return std::numeric_limits<double>::infinity();
  if (size < -1000) return 0;
  return rounded_exp(log * Wide{exponent});
}

}  // namespace pagoda
