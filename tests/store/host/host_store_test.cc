#include "store/host/host_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "store/test_page_copier.h"

namespace pagoda::store {
namespace {

constexpr std::uint64_t kPage = 64;

kv::PageLabel label(std::uint32_t number, std::uint8_t owner = 0) {
  kv::PageLabel made;
  made.key.hash.digest[0] = static_cast<std::byte>(number);
  made.owner.bytes[0] = static_cast<std::byte>(owner);
  made.tokens = {TokenId(number)};
  return made;
}

struct Fixture {
  explicit Fixture(std::uint64_t pages,
                   std::unique_ptr<kv::PageCopier> copier = kv::memory_copier())
      : owned(HostStore::open({.bytes_max = pages * kPage, .page_bytes = kPage}, std::move(copier))
                  .value()) {}

  kv::StoreFault wait(kv::StoreTicket ticket) {
    for (int i = 0; i < 5000; ++i) {
      store.poll(reports);
      for (const kv::StoreReport& report : reports) {
        if (report.ticket == ticket) return report.fault;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "ticket " << ticket << " was never reported";
    return kv::StoreFault::kTimeout;
  }
  bool write(std::uint32_t number, std::uint8_t fill, std::uint8_t owner = 0) {
    const std::vector<std::byte> page(kPage, static_cast<std::byte>(fill));
    if (!store.write({++tickets, label(number, owner), page})) return false;
    return wait(tickets) == kv::StoreFault::kNone;
  }
  kv::StoreFault read(const kv::PageLabel& wanted, std::vector<std::byte>& page) {
    page.assign(kPage, std::byte{0xEE});
    store.read({++tickets, wanted, page});
    return wait(tickets);
  }

  std::unique_ptr<HostStore> owned;
  HostStore& store = *owned;
  kv::StoreTicket tickets = 0;
  std::vector<kv::StoreReport> reports;
};

TEST(HostStore, GivesBackWhatWasWritten) {
  Fixture fixture(4);
  ASSERT_TRUE(fixture.write(1, 7));
  std::vector<std::byte> page;
  EXPECT_EQ(fixture.read(label(1), page), kv::StoreFault::kNone);
  EXPECT_EQ(page, std::vector<std::byte>(kPage, std::byte{7}));
  EXPECT_EQ(fixture.read(label(2), page), kv::StoreFault::kAbsent);
  EXPECT_EQ(page, std::vector<std::byte>(kPage, std::byte{0xEE}));
}

TEST(HostStore, RefusesALabelThatIsNotTheOneItKeeps) {
  Fixture fixture(4);
  ASSERT_TRUE(fixture.write(1, 7));
  kv::PageLabel other = label(1);
  other.tokens = {TokenId(99)};
  std::vector<std::byte> page;
  EXPECT_EQ(fixture.read(other, page), kv::StoreFault::kForeign);
  EXPECT_EQ(fixture.read(label(1, 3), page), kv::StoreFault::kForeign);
}

TEST(HostStore, KeepsWithinItsBytesAndEvictsTheLeastRecentlyUsed) {
  Fixture fixture(3);
  for (std::uint32_t i = 1; i <= 3; ++i)
    ASSERT_TRUE(fixture.write(i, static_cast<std::uint8_t>(i)));
  EXPECT_TRUE(fixture.store.keeps(label(1).key));  // keeps() counts as a use
  ASSERT_TRUE(fixture.write(4, 4));
  EXPECT_TRUE(fixture.store.keeps(label(1).key));
  EXPECT_FALSE(fixture.store.keeps(label(2).key));
  const kv::StoreStats stats = fixture.store.stats();
  EXPECT_EQ(stats.pages, 3u);
  EXPECT_LE(stats.bytes_used, stats.bytes_max);
  EXPECT_EQ(stats.pages_evicted, 1u);
  EXPECT_EQ(stats.pages_evicted_unread, 1u);
}

TEST(HostStore, FindsAnUnbrokenBeginning) {
  Fixture fixture(4);
  ASSERT_TRUE(fixture.write(1, 1) && fixture.write(2, 2) && fixture.write(4, 4));
  const std::vector<kv::PageKey> keys = {label(1).key, label(2).key, label(3).key, label(4).key};
  EXPECT_EQ(fixture.store.find(99, keys), 2u);
}

TEST(HostStore, RemovesAnOwnersPagesAndNobodyElses) {
  Fixture fixture(4);
  ASSERT_TRUE(fixture.write(1, 1, 5) && fixture.write(2, 2, 6) && fixture.write(3, 3, 5));
  const Result<kv::Removal> removed = fixture.store.remove(label(0, 5).owner);
  EXPECT_EQ(removed.value().pages, 2u);
  EXPECT_TRUE(removed.value().overwritten);
  EXPECT_FALSE(fixture.store.keeps(label(1).key) || fixture.store.keeps(label(3).key));
  EXPECT_TRUE(fixture.store.keeps(label(2).key));
  EXPECT_EQ(fixture.store.remove_all().value().pages, 1u);
  EXPECT_EQ(fixture.store.stats().pages, 0u);
}

TEST(HostStore, ACopyThatFailsIsNotKeptAndLosesNothing) {
  const auto control = std::make_shared<CopierControl>();
  Fixture fixture(4, std::make_unique<TestCopier>(control));
  ASSERT_TRUE(fixture.write(1, 7));
  control->fail_calls = 1;
  EXPECT_FALSE(fixture.write(2, 8));
  EXPECT_FALSE(fixture.store.keeps(label(2).key));
  std::vector<std::byte> page;
  control->fail_calls = 1;
  EXPECT_EQ(fixture.read(label(1), page), kv::StoreFault::kIo);
  EXPECT_EQ(fixture.read(label(1), page), kv::StoreFault::kNone);
  EXPECT_EQ(page, std::vector<std::byte>(kPage, std::byte{7}));
  EXPECT_EQ(control->unordered, 0u);
  for (std::uint32_t i = 10; i < 13; ++i)
    ASSERT_TRUE(fixture.write(i, 1));  // all four slots are whole
  EXPECT_EQ(fixture.store.stats().pages, 4u);
}

TEST(HostStore, AManyTimesWrittenStoreGivesTheRightPages) {
  Fixture fixture(8);
  std::vector<std::byte> page;
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint32_t number = round * 7 % 20;
    ASSERT_TRUE(fixture.write(number, static_cast<std::uint8_t>(number + 1)));
    const std::uint32_t other = round * 3 % 20;
    if (fixture.read(label(other), page) == kv::StoreFault::kNone) {
      ASSERT_EQ(page, std::vector<std::byte>(kPage, static_cast<std::byte>(other + 1)));
    }
    ASSERT_LE(fixture.store.stats().pages, 8u);
  }
}

}  // namespace
}  // namespace pagoda::store
