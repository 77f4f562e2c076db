// Reads on their way from two stores whose reports a test gives.
#include "engine/tiers/page_reads.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/tiers/scripted_store.h"

namespace pagoda::engine {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::size_t kPageBytes = 1000;

class PageReadsTest : public testing::Test {
 protected:
  void begin(Load& load, std::uint64_t block, std::size_t store, std::int64_t now_ns = 0) {
    reads_.begin({&load, block, store}, {}, page_, now_ns);
  }
  static TierOptions options(ScriptedStore& near, ScriptedStore& far, std::span<std::byte> page) {
    TierOptions options;
    options.stores = {&near, &far};
    options.reads_running_max = 3;
    options.page_at = [page](kv::BlockId) { return page; };
    return options;
  }

  std::array<std::byte, kPageBytes> page_ = {};
  ScriptedStore near_;
  ScriptedStore far_;
  const TierOptions options_ = options(near_, far_, page_);
  kv::StoreTicket tickets_ = 40;
  PageReads reads_{options_, tickets_};
  Load first_;
  Load second_;
};

TEST_F(PageReadsTest, ATicketStandsForItsLoadItsBlockAndItsStore) {
  begin(first_, 5, 1);
  begin(second_, 6, 0);
  ASSERT_EQ(far_.reads.size(), 1u);
  ASSERT_EQ(near_.reads.size(), 1u);
  EXPECT_EQ(far_.reads.front().ticket, 41u);
  EXPECT_EQ(far_.reads.front().page.data(), page_.data());
  const auto ended = reads_.end({.ticket = 41}, 0);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->load, &first_);
  EXPECT_EQ(ended->block, 5u);
  EXPECT_EQ(ended->store, 1u);
  EXPECT_FALSE(reads_.end({.ticket = 41}, 0).has_value()) << "a read ends once";
  EXPECT_FALSE(reads_.end({.ticket = 40}, 0).has_value()) << "a ticket of others";
}

TEST_F(PageReadsTest, IsFullAtTheLimitUntilAReadIsReported) {
  for (std::uint64_t block = 0; block < 3; ++block) {
    EXPECT_FALSE(reads_.is_full());
    begin(first_, block, block % 2);
  }
  EXPECT_TRUE(reads_.is_full());
  EXPECT_TRUE(reads_.end({.ticket = 42, .fault = kv::StoreFault::kAbsent}, 0).has_value());
  EXPECT_FALSE(reads_.is_full());
}

TEST_F(PageReadsTest, CancelsTheReadsOfOneLoadInEveryStore) {
  begin(first_, 0, 0);
  begin(first_, 1, 1);
  begin(second_, 0, 1);
  reads_.cancel(first_);
  EXPECT_TRUE(near_.reads.empty());
  ASSERT_EQ(far_.reads.size(), 1u);
  EXPECT_EQ(far_.reads.front().ticket, 43u);
  EXPECT_TRUE(reads_.is_full()) << "a cancelled read is reported, too";
}

TEST_F(PageReadsTest, AStoresRateIsThatOfPagesThatCameInTheTimeTheyTook) {
  EXPECT_EQ(reads_.bytes_per_second(0), std::nullopt);
  begin(first_, 0, 0, 0);
  begin(first_, 1, 1, 0);
  reads_.end({.ticket = 41, .ended_ns = 10 * kMs}, 500 * kMs);
  reads_.end({.ticket = 42, .fault = kv::StoreFault::kDamaged}, 20 * kMs);
  ASSERT_TRUE(reads_.bytes_per_second(0).has_value());
  EXPECT_NEAR(*reads_.bytes_per_second(0), kPageBytes / 0.010, 1);
  EXPECT_DOUBLE_EQ(reads_.seconds_reading(0), 0.010);
  EXPECT_EQ(reads_.bytes_per_second(1), std::nullopt) << "no page came";
  EXPECT_DOUBLE_EQ(reads_.seconds_reading(1), 0.020);
}

}  // namespace
}  // namespace pagoda::engine
