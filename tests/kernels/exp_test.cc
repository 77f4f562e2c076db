#include "kernels/exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagoda::kernels {
namespace {

TEST(Exp, IsWithinTwoUnitsInTheLastPlace) {
  for (int i = -86999; i <= 87999; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    const double exact = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    ASSERT_LE(std::abs(exp_fixed(x) - exact), 2 * ulp) << x;
  }
}

TEST(Exp, IsExactAtTheEnds) {
  EXPECT_EQ(exp_fixed(0.0f), 1.0f);
  EXPECT_EQ(exp_fixed(-0.0f), 1.0f);
  EXPECT_EQ(exp_fixed(-87.5f), 0.0f);
  EXPECT_EQ(exp_fixed(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isfinite(exp_fixed(1e9f)));
  EXPECT_TRUE(std::isnan(exp_fixed(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Power, IsWithinThreeMillionthsDownToTheSmallestNormalAndZeroBelow) {
  for (int i = -125999; i <= 1000; ++i) {
    const float t = static_cast<float>(i) * 1e-3f;
    const double exact = std::exp2(static_cast<double>(t));
    ASSERT_LE(std::abs(power_fixed(t) - exact), 3e-6 * exact) << t;
  }
  EXPECT_EQ(power_fixed(0.0f), 1.0f);
  EXPECT_EQ(power_fixed(-126.0f), std::numeric_limits<float>::min());
  EXPECT_EQ(power_fixed(-126.1f), 0.0f);
  EXPECT_EQ(power_fixed(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(power_fixed(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace pagoda::kernels
