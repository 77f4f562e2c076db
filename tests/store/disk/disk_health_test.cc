#include "store/disk/disk_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace pagoda::store {
namespace {

using kv::StoreFault;
using testing::HasSubstr;

constexpr std::uint32_t kFailuresMax = 3;
constexpr std::int64_t kRetryAfter = 100;

class DiskHealthTest : public testing::Test {
 protected:
  void fail(bool is_write, int times, std::int64_t now_ns = 0) {
    for (int i = 0; i < times; ++i) health_.note_request(is_write, StoreFault::kIo, EIO, now_ns);
  }

  DiskHealth health_{kFailuresMax, kRetryAfter};
};

TEST_F(DiskHealthTest, IsGoodAndSilentFromTheStart) {
  EXPECT_TRUE(health_.can_read(0) && health_.can_write(0) && health_.can_sync(0));
  EXPECT_TRUE(health_.has_index());
  EXPECT_EQ(health_.condition(), "");
}

TEST_F(DiskHealthTest, FailuresInARowSwitchOffTheirKindAlone) {
  fail(true, kFailuresMax - 1);
  EXPECT_TRUE(health_.can_write(1));
  fail(true, 1);
  EXPECT_FALSE(health_.can_write(1));
  EXPECT_TRUE(health_.can_read(1));
  EXPECT_THAT(health_.condition(), HasSubstr("writes fail: "));
}

TEST_F(DiskHealthTest, IsTriedAgainAfterAWhileAndOffAtTheNextFailure) {
  fail(false, kFailuresMax);
  EXPECT_FALSE(health_.can_read(kRetryAfter - 1));
  EXPECT_TRUE(health_.can_read(kRetryAfter));
  fail(false, 1, kRetryAfter);
  EXPECT_FALSE(health_.can_read(kRetryAfter + 1));
}

TEST_F(DiskHealthTest, APageThatIsDamagedOrForeignShowsThatTheDiskWorks) {
  for (const StoreFault fault : {StoreFault::kNone, StoreFault::kDamaged, StoreFault::kForeign}) {
    fail(false, kFailuresMax - 1);
    health_.note_request(false, fault, 0, 0);
    EXPECT_EQ(health_.condition(), "");
    fail(false, kFailuresMax - 1);
    EXPECT_TRUE(health_.can_read(1)) << "failures are counted anew";
    health_.note_request(false, StoreFault::kNone, 0, 0);
  }
}

TEST_F(DiskHealthTest, WhatSaysNothingOfTheDiskChangesNothing) {
  fail(false, kFailuresMax);
  for (const StoreFault fault : {StoreFault::kAbsent, StoreFault::kTimeout, StoreFault::kNoRoom}) {
    health_.note_request(false, fault, 0, 0);
    EXPECT_FALSE(health_.can_read(1));
  }
}

TEST_F(DiskHealthTest, WithoutSyncsThereAreNoWrites) {
  for (std::uint32_t i = 0; i < kFailuresMax; ++i) health_.note_sync(EIO, 0);
  EXPECT_FALSE(health_.can_sync(1));
  EXPECT_FALSE(health_.can_write(1));
  EXPECT_TRUE(health_.can_read(1));
  health_.note_sync(0, 2);
  EXPECT_TRUE(health_.can_write(3));
}

TEST_F(DiskHealthTest, AFullDiskMayGrowAgainOnceAfterAWhile) {
  EXPECT_FALSE(health_.take_growth(1000)) << "it was never full";
  health_.note_request(true, StoreFault::kNoRoom, ENOSPC, 1000);
  EXPECT_FALSE(health_.take_growth(1000 + kRetryAfter));
  EXPECT_TRUE(health_.take_growth(1001 + kRetryAfter));
  EXPECT_FALSE(health_.take_growth(1001 + kRetryAfter));
}

TEST_F(DiskHealthTest, AnIndexThatCannotBeReadIsToldBeforeAllElse) {
  fail(false, 1);
  health_.note_load(EIO);
  EXPECT_FALSE(health_.has_index());
  EXPECT_THAT(health_.condition(), HasSubstr("the index cannot be read"));
  health_.note_load(0);
  EXPECT_TRUE(health_.has_index());
  EXPECT_THAT(health_.condition(), HasSubstr("reads fail: "));
}

}  // namespace
}  // namespace pagoda::store
