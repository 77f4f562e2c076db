#include "cli/curve_line.h"

#include <gtest/gtest.h>

namespace pagoda::cli {
namespace {

TEST(CurveLine, SaysWhatHalfAndTwiceTheMemoryWouldHaveGivenUnderThePolicyThatRan) {
  kv::CurveStats stats;
  stats.blocks = 100;
  stats.blocks_asked = 12345;
  stats.policy = "arc";
  stats.policies = 2;
  stats.rates[0] = {.policy = "lru", .half = 0.1, .same = 0.2, .twice = 0.3};
  stats.rates[1] = {.policy = "arc", .half = 0.25, .same = 0.3333, .twice = 0.5};
  EXPECT_EQ(curve_line(stats),
            "cache hit rate about 33.3 % of 12,345 blocks looked up; with half the memory 25.0 %, "
            "with twice the memory 50.0 %\n");
  stats.blocks_asked = 1;
  EXPECT_NE(curve_line(stats).find(" of 1 block looked up;"), std::string::npos);
}

TEST(CurveLine, IsEmptyWhereASampleDoesNotTell) {
  kv::CurveStats stats;
  stats.blocks_asked = 5;
  stats.policy = "s3fifo";
  stats.policies = 1;
  stats.rates[0] = {.policy = "s3fifo", .half = 0.5, .same = {}, .twice = {}};
  EXPECT_EQ(curve_line(stats), "");
}

TEST(CurveLine, IsEmptyWithoutACurveAndBeforeTheFirstRequest) {
  kv::CurveStats stats;
  EXPECT_EQ(curve_line(stats), "");
  stats.policy = "lru";
  stats.policies = 1;
  stats.rates[0].policy = "lru";
  EXPECT_EQ(curve_line(stats), "");
}

}  // namespace
}  // namespace pagoda::cli
