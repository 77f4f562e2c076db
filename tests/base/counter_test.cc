#include "base/counter.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace pagoda {
namespace {

constexpr std::array kBounds = {1.0, 2.5, 10.0};

TEST(Histogram, AValueBelongsToTheFirstBoundThatIsNotBelowIt) {
  Histogram histogram(kBounds);
  for (const double value : {0.0, 1.0, 1.1, 2.5, 9.0, 10.0, 10.5, 1e9}) histogram.observe(value);
  const Histogram::Reading reading = histogram.read();
  EXPECT_EQ(reading.counts[0], 2u);
  EXPECT_EQ(reading.counts[1], 2u);
  EXPECT_EQ(reading.counts[2], 2u);
  EXPECT_EQ(reading.counts[3], 2u);
  EXPECT_EQ(reading.count(), 8u);
  EXPECT_DOUBLE_EQ(reading.sum, 0.0 + 1.0 + 1.1 + 2.5 + 9.0 + 10.0 + 10.5 + 1e9);
}

TEST(Histogram, ReadersSeeCountsThatNeverFall) {
  constexpr std::uint64_t kValues = 200'000;
  Histogram histogram(kBounds);
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kValues; ++i) histogram.observe(static_cast<double>(i % 12));
  });
  std::uint64_t before = 0;
  while (before < kValues) {
    const std::uint64_t now = histogram.read().count();
    ASSERT_GE(now, before);
    before = now;
  }
  writer.join();
  EXPECT_EQ(histogram.read().count(), kValues);
}

TEST(Counter, AddsUp) {
  Counter<std::uint64_t> sum;
  sum.add(3);
  sum.add(4);
  EXPECT_EQ(sum.read(), 7u);
}

}  // namespace
}  // namespace pagoda
