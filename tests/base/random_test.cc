#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace pagoda {
namespace {

using CounterWords = std::array<std::uint32_t, 4>;

// The known answers were published with Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Random, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (CounterWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (CounterWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (CounterWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EachOfSeedStreamAndIndexChangesTheNumber) {
  const std::set<std::uint64_t> different = {random_bits(1, 2, 3), random_bits(2, 2, 3),
                                             random_bits(1, 3, 3), random_bits(1, 2, 4),
                                             random_bits(1ull << 32, 2, 3)};
  EXPECT_EQ(different.size(), 5u);
  EXPECT_EQ(random_bits(1, 2, 3), random_bits(1, 2, 3));
}

TEST(Random, UnitNumbersFillTheUnitIntervalEvenly) {
  constexpr int kBins = 16;
  constexpr int kDraws = 1'600'000;
  std::array<int, kBins> counts = {};
  for (int i = 0; i < kDraws; ++i) {
    const double u =
        random_unit(static_cast<std::uint64_t>(i % 100), 0, static_cast<std::uint64_t>(i / 100));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++counts[static_cast<std::size_t>(u * kBins)];
  }
  // Each bin expects 100,000 with a standard deviation of 306: four of them.
  for (const int count : counts) EXPECT_NEAR(count, kDraws / kBins, 1225);
}

}  // namespace
}  // namespace pagoda
