// Compares our own sine, cosine, logarithm and power with exact values, and with the C library's in
// long double over all angles that rotary embeddings have.
#include "base/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "base/random.h"
#include "test_data.h"

namespace pagoda {
namespace {

// Reads a line of tests/data/rope/functions.txt: its numbers are the bits of doubles.
double read_double(std::istream& from) {
  std::uint64_t bits = 0;
  from >> std::hex >> bits;
  return std::bit_cast<double>(bits);
}

double ulp_of(long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::ldexp(1.0, std::max(exponent, -1021) - 53);
}

// Returns the error in ulps of the exact value, which is the sum of two numbers.
double error_of(double got, long double high, long double low = 0) {
  return static_cast<double>(std::fabs((got - high) - low)) / ulp_of(high);
}

TEST(Elementary, LogarithmsAndPowersAreTheNearestDoubles) {
  std::ifstream fixture(test_data() + "/rope/functions.txt");
  int lines = 0;
  for (std::string name; fixture >> name;) {
    if (name == "log") {
      const double x = read_double(fixture);
      ASSERT_EQ(natural_log(x), read_double(fixture)) << "log " << x;
    } else if (name == "power") {
      const double x = read_double(fixture);
      const double y = read_double(fixture);
      ASSERT_EQ(power(x, y), read_double(fixture)) << x << " to the power of " << y;
    } else {
      std::getline(fixture, name);
      continue;
    }
    ++lines;
  }
  EXPECT_GT(lines, 500);
}

TEST(Elementary, SinesAndCosinesOfAllSizesAreWithinTheirBound) {
  std::ifstream fixture(test_data() + "/rope/functions.txt");
  int lines = 0;
  for (std::string name; fixture >> name;) {
    if (name != "sincos") {
      std::getline(fixture, name);
      continue;
    }
    const double x = read_double(fixture);
    const double sine = read_double(fixture);
    const double sine_rest = read_double(fixture);
    const double cosine = read_double(fixture);
    const double cosine_rest = read_double(fixture);
    const SineCosine got = sine_cosine(x);
    ASSERT_LE(error_of(got.sine, sine, sine_rest), 0.8) << "sine of " << x;
    ASSERT_LE(error_of(got.cosine, cosine, cosine_rest), 0.8) << "cosine of " << x;
    ++lines;
  }
  EXPECT_GT(lines, 300);
}

// The test walks every pair of every head size, at positions up to 2^24. Long doubles have 64 bits
// or more.
TEST(Elementary, OverAllAnglesOfRotaryTablesTheCLibraryAgrees) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  double worst_power = 0;
  double worst_angle = 0;
  for (const double base : {1e4, 5e5, 1e6, 1e7, 1e8}) {
    for (const int dims : {2, 32, 64, 80, 96, 128, 256}) {
      for (int pair = 0; pair < dims / 2; ++pair) {
        const double exponent = -2.0 * pair / dims;
        const double frequency = power(base, exponent);
        const long double exact = std::pow(static_cast<long double>(base), exponent);
        worst_power = std::max(worst_power, error_of(frequency, exact));
        for (std::uint64_t i = 0; i < 40; ++i) {
          const std::uint64_t bits = random_bits(1, static_cast<std::uint64_t>(pair), i);
          const std::uint64_t position = (bits >> 40) >> (bits % 25);  // many small positions, too
          const double angle = static_cast<double>(position) * frequency;
          const SineCosine got = sine_cosine(angle);
          worst_angle =
              std::max({worst_angle, error_of(got.sine, std::sin(static_cast<long double>(angle))),
                        error_of(got.cosine, std::cos(static_cast<long double>(angle)))});
        }
      }
    }
  }
  EXPECT_LE(worst_power, 0.501);
  EXPECT_LE(worst_angle, 0.8);
}

TEST(Elementary, SignsZerosAndWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sine_cosine(0).sine, 0);
  EXPECT_FALSE(std::signbit(sine_cosine(0.0).sine));
  EXPECT_TRUE(std::signbit(sine_cosine(-0.0).sine));
  EXPECT_EQ(sine_cosine(-0.0).cosine, 1);
  for (const double angle : {0.3, 1.0, 2.5, 4.0, 5.5, 1e6, 1e300}) {
    EXPECT_EQ(sine_cosine(-angle).sine, -sine_cosine(angle).sine);
    EXPECT_EQ(sine_cosine(-angle).cosine, sine_cosine(angle).cosine);
  }
  for (const double angle : {infinity, -infinity, std::nan("")}) {
    EXPECT_TRUE(std::isnan(sine_cosine(angle).sine));
    EXPECT_TRUE(std::isnan(sine_cosine(angle).cosine));
  }
  EXPECT_EQ(natural_log(0), -infinity);
  EXPECT_EQ(natural_log(infinity), infinity);
  EXPECT_TRUE(std::isnan(natural_log(-1)));
  EXPECT_TRUE(std::isnan(natural_log(std::nan(""))));
  EXPECT_EQ(power(7, 0), 1);
  EXPECT_EQ(power(1, 1e300), 1);
  EXPECT_EQ(power(10, 400), infinity);
  EXPECT_EQ(power(10, -400), 0);
  EXPECT_EQ(power(2, 1023), 0x1p1023);
  EXPECT_EQ(power(2, -1074), 0x1p-1074);
  EXPECT_EQ(power(1e300, 1e300), infinity);
}

}  // namespace
}  // namespace pagoda
