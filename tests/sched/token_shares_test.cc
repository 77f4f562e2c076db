#include "sched/token_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace pagoda::sched {
namespace {

class TokenSharesTest : public testing::Test {
 protected:
  TokenSharesTest() : a_(tenants_.add("a", {})), b_(tenants_.add("b", {})) {}

  void divide(std::uint64_t rows, std::uint64_t of_a, std::uint64_t of_b) {
    shares_.clear(tenants_);
    shares_.add(a_, of_a, 0, true);
    shares_.add(b_, of_b, 0, true);
    shares_.divide(tenants_, rows);
  }

  TenantTable tenants_;
  TenantId a_;
  TenantId b_;
  TokenShares shares_;
};

TEST_F(TokenSharesTest, OneThatWantsLittleGetsAllButTheOthersSurePart) {
  tenants_.charge_tokens(a_, 1000);  // tokens of earlier steps do not matter
  divide(32, 200, 800);
  EXPECT_TRUE(shares_.wants_little(a_));
  EXPECT_FALSE(shares_.wants_little(b_));
  EXPECT_EQ(shares_.left(a_), 28u);
  EXPECT_EQ(shares_.left(b_), 4u) << "a quarter of the half that is its fair share";
}

TEST_F(TokenSharesTest, OfTwoThatWantMuchTheOneWhoseClockIsBehindGetsMore) {
  tenants_.charge_tokens(a_, 1);
  divide(32, 400, 800);
  EXPECT_FALSE(shares_.wants_little(a_));
  EXPECT_EQ(shares_.left(a_), 4u);
  EXPECT_EQ(shares_.left(b_), 28u);
}

TEST_F(TokenSharesTest, WhatNobodyWantsIsForWhoeverComes) {
  divide(32, 3, 5);
  EXPECT_EQ(shares_.left(a_), 3u + 24u);
  EXPECT_EQ(shares_.left(TenantId(0)), 24u);
  shares_.take(a_, 20);
  EXPECT_EQ(shares_.left(b_), 5u + 24u - 17u);
}

TEST_F(TokenSharesTest, WhatCannotStartHoldsNoTokensButIsMuch) {
  shares_.clear(tenants_);
  shares_.add(a_, 100, 0, true);
  shares_.add(b_, 4000, 0, false);
  shares_.divide(tenants_, 32);
  EXPECT_TRUE(shares_.wants_little(a_));
  EXPECT_EQ(shares_.left(a_), 32u);
  EXPECT_EQ(shares_.left(b_), 0u);
}

TEST_F(TokenSharesTest, TheUrgentComeBeforeEveryShare) {
  shares_.clear(tenants_);
  shares_.add(a_, 20, 0, true);
  shares_.add(b_, 4000, -1, true);
  shares_.divide(tenants_, 32);
  EXPECT_EQ(shares_.left(a_), 0u);
  EXPECT_EQ(shares_.left(b_), 32u);
}

// Every token is given once, and every tenant that wants tokens gets its guaranteed part.
TEST(TokenShares, TokensAreGivenOnceAndNobodyGoesWithout) {
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t end) { return random_bits(7, 0, draws++) % end; };
  for (int round = 0; round < 2000; ++round) {
    TenantTable tenants;
    for (std::uint64_t i = below(5); i > 0; --i) {
      tenants.add("tenant", {.weight = static_cast<double>(1 + below(4))});
    }
    TokenShares shares;
    shares.clear(tenants);
    std::vector<std::uint64_t> wanted(tenants.size());
    double weights = 0;
    for (std::uint32_t i = 0; i < tenants.size(); ++i) {
      tenants.charge_tokens(TenantId(i), below(100));
      wanted[i] = below(3) * below(500);
      if (wanted[i] == 0) continue;
      shares.add(TenantId(i), wanted[i], 0, true);
      weights += tenants[TenantId(i)].limits.weight;
    }
    const std::uint64_t rows = 5 + below(200);
    shares.divide(tenants, rows);
    std::uint64_t given = 0;
    for (std::uint32_t i = 0; i < tenants.size(); ++i) {
      const double fair =
          wanted[i] == 0 ? 0
                         : static_cast<double>(rows) * tenants[TenantId(i)].limits.weight / weights;
      const auto sure = static_cast<std::uint64_t>(std::floor(fair / 4));
      const std::uint64_t taken = std::min(wanted[i], shares.left(TenantId(i)));
      EXPECT_GE(taken, std::min(wanted[i], sure)) << "round " << round << ", tenant " << i;
      EXPECT_EQ(taken > 0, wanted[i] > 0) << "round " << round << ", tenant " << i;
      shares.take(TenantId(i), taken);
      given += taken;
    }
    std::uint64_t all = 0;
    for (const std::uint64_t tokens_wanted : wanted) all += tokens_wanted;
    EXPECT_EQ(given, std::min(rows, all)) << "round " << round;
  }
}

}  // namespace
}  // namespace pagoda::sched
