// Tests that pass, fail and skip in every way; skips_test.py runs some of them at a time.
#include <gtest/gtest.h>

#include "skip_reasons.h"

namespace pagoda {
namespace {

TEST(Sample, Passes) { EXPECT_EQ(1 + 1, 2); }
TEST(Sample, Fails) { FAIL() << "as it should"; }
TEST(Sample, NeedsGpu) {
  GTEST_SKIP() << kNeedsGpu << ": none found";
  FAIL() << "it must not run";
}
TEST(Sample, NeedsNoGpu) {
  GTEST_SKIP() << kNeedsNoGpu << ": there is one";
  FAIL() << "it must not run";
}
TEST(Sample, NeedsDirectIo) {
  GTEST_SKIP() << kNeedsDirectIo << ": refused";
  FAIL() << "it must not run";
}
TEST(Sample, NeedsUring) {
  GTEST_SKIP() << kNeedsUring << ": refused";
  FAIL() << "it must not run";
}
TEST(Sample, NeedsTea) {
  GTEST_SKIP() << "no tea:\tthe\ncup is empty";
  FAIL() << "it must not run";
}
TEST(Sample, SaysNothing) {
  GTEST_SKIP();
  FAIL() << "it must not run";
}
TEST(Sample, FailsAndSkips) {
  ADD_FAILURE() << "before it skips";
  GTEST_SKIP() << kNeedsGpu;
}

class SkipsInSetUp : public testing::Test {
 protected:
  void SetUp() override { GTEST_SKIP() << kNeedsGpu << ": says SetUp"; }
};
TEST_F(SkipsInSetUp, Test) { FAIL() << "it must not run"; }

}  // namespace
}  // namespace pagoda
