#include "cli/curve_line.h"

#include <gtest/gtest.h>

namespace pagoda::cli {
namespace {

TEST(CurveLine, SaysWhatHalfAndTwiceTheMemoryWouldHaveGivenUnderThePolicyThatRan) {
  kv::CurvePicture picture;
  picture.blocks = 100;
  picture.blocks_asked = 12345;
  picture.policy = "arc";
  picture.policies = 2;
  picture.rates[0] = {.policy = "lru", .half = 0.1, .same = 0.2, .twice = 0.3};
  picture.rates[1] = {.policy = "arc", .half = 0.25, .same = 0.3333, .twice = 0.5};
  EXPECT_EQ(curve_line(picture),
            "of 12,345 blocks of prompts asked for the cache had about 33.3 %; half the memory "
            "would have had 25.0 %, twice the memory 50.0 %\n");
}

TEST(CurveLine, IsEmptyWhereASampleDoesNotTell) {
  kv::CurvePicture picture;
  picture.blocks_asked = 5;
  picture.policy = "s3fifo";
  picture.policies = 1;
  picture.rates[0] = {.policy = "s3fifo", .half = 0.5, .same = {}, .twice = {}};
  EXPECT_EQ(curve_line(picture), "");
}

TEST(CurveLine, IsEmptyWithoutACurveAndBeforeTheFirstRequest) {
  kv::CurvePicture picture;
  EXPECT_EQ(curve_line(picture), "");
  picture.policy = "lru";
  picture.policies = 1;
  picture.rates[0].policy = "lru";
  EXPECT_EQ(curve_line(picture), "");
}

}  // namespace
}  // namespace pagoda::cli
