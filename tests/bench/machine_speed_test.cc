// What the machine gives, and when a run measured beside it does not count.
#include "bench/machine_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/multiply_probe.h"

namespace pagoda::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MachineSpeed speeds(double small_reads, double large_reads, double multiplies) {
  return {.reads = {{1 << 20, 1, small_reads},
                    {1 << 29, 1, large_reads},
                    {1 << 20, 2, 2 * small_reads},
                    {1 << 29, 2, 2 * large_reads}},
          .multiplies = {{"fp32", 1, multiplies},
                         {"bf16", 1, 10 * multiplies},
                         {"fp32", 2, 2 * multiplies},
                         {"bf16", 2, 20 * multiplies}}};
}

TEST(MachineSpeed, ASetIsReadAtTheSpeedOfTheSmallestBufferThatHoldsIt) {
  const MachineSpeed speed = speeds(100, 10, 1);
  EXPECT_EQ(read_speed(speed, 1, 1), 100);
  EXPECT_EQ(read_speed(speed, 1 << 20, 1), 100);
  EXPECT_EQ(read_speed(speed, (1 << 20) + 1, 1), 10);
  EXPECT_EQ(read_speed(speed, std::uint64_t{1} << 40, 1), 10) << "larger than any";
  EXPECT_EQ(read_speed(speed, 1, 2), 200);
}

TEST(MachineSpeed, TheFastestArithmeticIsTheCeiling) {
  EXPECT_EQ(multiply_speed(speeds(1, 1, 3), 1), 30);
  EXPECT_EQ(multiply_speed(speeds(1, 1, 3), 2), 60);
}

TEST(MachineSpeed, TheLongerOfReadingAndMultiplyingIsTheLimit) {
  const MachineSpeed speed = speeds(100, 10, 0.1);  // one thread: 10 GB/s, 1 TMAC/s
  const std::uint64_t large = 1 << 29;
  const SpeedLimit reading = speed_limit(speed, 1, 5'000'000'000, large, 1'000);
  EXPECT_DOUBLE_EQ(reading.seconds, 0.5);
  EXPECT_TRUE(reading.by_memory);
  const SpeedLimit multiplying = speed_limit(speed, 1, 1'000, large, 3'000'000'000'000);
  EXPECT_DOUBLE_EQ(multiplying.seconds, 3);
  EXPECT_FALSE(multiplying.by_memory);
}

TEST(MachineSpeed, TheBestOfEachIsKept) {
  const MachineSpeed best = best_speed(std::vector{speeds(90, 12, 1), speeds(100, 10, 2)});
  EXPECT_EQ(best.reads[0].gigabytes_per_second, 100);
  EXPECT_EQ(best.reads[1].gigabytes_per_second, 12);
  EXPECT_EQ(best.multiplies[0].tera_per_second, 2);
}

TEST(MachineSpeed, AMoveUpToAFifthIsTakenAndMoreIsNot) {
  EXPECT_THAT(moved_speeds(std::vector{speeds(100, 10, 1)}), IsEmpty());
  EXPECT_THAT(moved_speeds(std::vector{speeds(100, 10, 1), speeds(119, 11.9, 1.19)}), IsEmpty());
  // Down and up again: the ends agree, what was between does not.
  EXPECT_THAT(
      moved_speeds(std::vector{speeds(100, 10, 1), speeds(100, 8, 1), speeds(100, 10, 1)}),
      ElementsAre(HasSubstr("reading 512.00 MiB by 1 thread(s) moved by 25 %, from 8 to 10"),
                  HasSubstr("reading 512.00 MiB by 2 thread(s)")));
  EXPECT_THAT(moved_speeds(std::vector{speeds(100, 10, 1), speeds(100, 10, 2)}),
              ElementsAre(HasSubstr("multiplying fp32 by 1 thread(s) moved by 100 %"),
                          HasSubstr("bf16 by 1"), HasSubstr("fp32 by 2"), HasSubstr("bf16 by 2")));
}

TEST(MachineSpeed, AProbeMeasuresTheSameThingsInTheSameOrderEachTime) {
  const SteadyClock clock;
  SpeedProbe probe(2, clock);
  const MachineSpeed first = probe.measure();
  const MachineSpeed second = probe.measure();
  ASSERT_EQ(first.reads.size(), second.reads.size());
  ASSERT_EQ(first.multiplies.size(), 2 * multiply_probes().size());
  for (std::size_t i = 0; i < first.reads.size(); ++i) {
    EXPECT_EQ(first.reads[i].bytes, second.reads[i].bytes);
    EXPECT_EQ(first.reads[i].threads, second.reads[i].threads);
    EXPECT_GT(first.reads[i].gigabytes_per_second, 0);
  }
  for (std::size_t i = 0; i < first.multiplies.size(); ++i) {
    EXPECT_EQ(first.multiplies[i].kind, second.multiplies[i].kind);
    EXPECT_GT(first.multiplies[i].tera_per_second, 0);
  }
}

TEST(MultiplyProbes, TwiceTheRoundsAreTwiceTheWork) {
  for (const MultiplyProbe& probe : multiply_probes()) {
    const std::uint64_t once = probe.run(1000);
    EXPECT_GE(once, 1000u) << probe.kind;
    EXPECT_EQ(probe.run(2000), 2 * once) << probe.kind;
  }
}

}  // namespace
}  // namespace pagoda::bench
