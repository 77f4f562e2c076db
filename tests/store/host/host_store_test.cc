#include "store/host/host_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "store/test_page_copier.h"

namespace pagoda::store {
namespace {

// Pages of either size, and with how many threads they are copied. Those of the default model are
// large enough that a copy is shared out in pieces (368,640 bytes are 16 tokens).
struct Way {
  std::uint64_t page_bytes;
  std::size_t threads;
};

// A page whose bytes tell its number and their place: a piece that lands elsewhere shows.
std::vector<std::byte> filled(std::uint64_t page_bytes, std::uint8_t number) {
  std::vector<std::byte> page(page_bytes);
  for (std::uint64_t i = 0; i < page_bytes; ++i) {
    page[i] = static_cast<std::byte>(number * 37 + i + (i >> 8) * 11 + (i >> 16) * 101);
  }
  return page;
}

kv::PageLabel label(std::uint32_t number, std::uint8_t owner = 0) {
  kv::PageLabel made;
  made.key.hash.digest[0] = static_cast<std::byte>(number);
  made.owner.bytes[0] = static_cast<std::byte>(owner);
  made.tokens = {TokenId(number)};
  return made;
}

struct Fixture {
  Fixture(Way way, std::uint64_t pages, std::unique_ptr<kv::PageCopier> copier)
      : page_bytes(way.page_bytes),
        owned(HostStore::open({.bytes_max = pages * page_bytes, .page_bytes = page_bytes},
                              std::move(copier))
                  .value()) {}
  Fixture(Way way, std::uint64_t pages) : Fixture(way, pages, kv::memory_copier(way.threads)) {}

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
    const std::vector<std::byte> page = filled(page_bytes, fill);
    if (!store.write({++tickets, label(number, owner), page})) return false;
    return wait(tickets) == kv::StoreFault::kNone;
  }
  kv::StoreFault read(const kv::PageLabel& wanted, std::vector<std::byte>& page) {
    page.assign(page_bytes, std::byte{0xEE});
    store.read({++tickets, wanted, page});
    return wait(tickets);
  }

  std::uint64_t page_bytes;
  std::unique_ptr<HostStore> owned;
  HostStore& store = *owned;
  kv::StoreTicket tickets = 0;
  std::vector<kv::StoreReport> reports;
};

class HostStoreCopying : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, HostStoreCopying, ::testing::Values(Way{64, 1}, Way{368'640, 3}),
                         [](const auto& each) {
                           return std::to_string(each.param.page_bytes) + "BytesBy" +
                                  std::to_string(each.param.threads);
                         });

TEST_P(HostStoreCopying, GivesBackWhatWasWritten) {
  Fixture fixture(GetParam(), 4);
  ASSERT_TRUE(fixture.write(1, 7));
  std::vector<std::byte> page;
  EXPECT_EQ(fixture.read(label(1), page), kv::StoreFault::kNone);
  EXPECT_EQ(page, filled(fixture.page_bytes, 7));
  EXPECT_EQ(fixture.read(label(2), page), kv::StoreFault::kAbsent);
  EXPECT_EQ(page, std::vector<std::byte>(fixture.page_bytes, std::byte{0xEE}));
}

TEST_P(HostStoreCopying, RefusesALabelThatIsNotTheOneItKeeps) {
  Fixture fixture(GetParam(), 4);
  ASSERT_TRUE(fixture.write(1, 7));
  kv::PageLabel other = label(1);
  other.tokens = {TokenId(99)};
  std::vector<std::byte> page;
  EXPECT_EQ(fixture.read(other, page), kv::StoreFault::kForeign);
  EXPECT_EQ(fixture.read(label(1, 3), page), kv::StoreFault::kForeign);
}

TEST_P(HostStoreCopying, KeepsWithinItsBytesAndEvictsTheLeastRecentlyUsed) {
  Fixture fixture(GetParam(), 3);
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

TEST_P(HostStoreCopying, FindsAnUnbrokenBeginning) {
  Fixture fixture(GetParam(), 4);
  ASSERT_TRUE(fixture.write(1, 1) && fixture.write(2, 2) && fixture.write(4, 4));
  const std::vector<kv::PageKey> keys = {label(1).key, label(2).key, label(3).key, label(4).key};
  EXPECT_EQ(fixture.store.find(99, keys), 2u);
}

TEST_P(HostStoreCopying, RemovesAnOwnersPagesAndNobodyElses) {
  Fixture fixture(GetParam(), 4);
  ASSERT_TRUE(fixture.write(1, 1, 5) && fixture.write(2, 2, 6) && fixture.write(3, 3, 5));
  const Result<kv::Removal> removed = fixture.store.remove(label(0, 5).owner);
  EXPECT_EQ(removed.value().pages, 2u);
  EXPECT_TRUE(removed.value().overwritten);
  EXPECT_FALSE(fixture.store.keeps(label(1).key) || fixture.store.keeps(label(3).key));
  EXPECT_TRUE(fixture.store.keeps(label(2).key));
  EXPECT_EQ(fixture.store.remove_all().value().pages, 1u);
  EXPECT_EQ(fixture.store.stats().pages, 0u);
}

TEST_P(HostStoreCopying, ACopyThatFailsIsNotKeptAndLosesNothing) {
  const auto control = std::make_shared<CopierControl>();
  Fixture fixture(GetParam(), 4, std::make_unique<TestCopier>(control, GetParam().threads));
  ASSERT_TRUE(fixture.write(1, 7));
  control->fail_calls = 1;
  EXPECT_FALSE(fixture.write(2, 8));
  EXPECT_FALSE(fixture.store.keeps(label(2).key));
  std::vector<std::byte> page;
  control->fail_calls = 1;
  EXPECT_EQ(fixture.read(label(1), page), kv::StoreFault::kIo);
  EXPECT_EQ(fixture.read(label(1), page), kv::StoreFault::kNone);
  EXPECT_EQ(page, filled(fixture.page_bytes, 7));
  EXPECT_EQ(control->unordered, 0u);
  for (std::uint32_t i = 10; i < 13; ++i)
    ASSERT_TRUE(fixture.write(i, 1));  // all four slots are whole
  EXPECT_EQ(fixture.store.stats().pages, 4u);
}

TEST_P(HostStoreCopying, AManyTimesWrittenStoreGivesTheRightPages) {
  Fixture fixture(GetParam(), 8);
  std::vector<std::byte> page;
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint32_t number = round * 7 % 20;
    ASSERT_TRUE(fixture.write(number, static_cast<std::uint8_t>(number + 1)));
    const std::uint32_t other = round * 3 % 20;
    if (fixture.read(label(other), page) == kv::StoreFault::kNone) {
      ASSERT_EQ(page, filled(fixture.page_bytes, static_cast<std::uint8_t>(other + 1)));
    }
    ASSERT_LE(fixture.store.stats().pages, 8u);
  }
}

TEST_P(HostStoreCopying, SixteenCopiesAtOnceGiveTheRightPages) {
  constexpr std::uint32_t kAtOnce = 16;
  const auto control = std::make_shared<CopierControl>();
  Fixture fixture(GetParam(), 2 * kAtOnce,
                  std::make_unique<TestCopier>(control, GetParam().threads));
  std::vector<std::vector<std::byte>> pages;
  for (std::uint32_t i = 0; i < 2 * kAtOnce; ++i) {
    pages.push_back(filled(fixture.page_bytes, static_cast<std::uint8_t>(i)));
  }
  // Half of the pages are read back while the other half is written: sixteen wait behind the first.
  for (std::uint32_t round = 0; round < 8; ++round) {
    std::vector<std::vector<std::byte>> read(kAtOnce, std::vector<std::byte>(fixture.page_bytes));
    control->hold(true);
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      if (round > 0) fixture.store.read({++fixture.tickets, label(100 * (round - 1) + i), read[i]});
      ASSERT_TRUE(fixture.store.write(
          {++fixture.tickets, label(100 * round + i), pages[(round + i) % pages.size()]}));
    }
    control->hold(false);
    ASSERT_TRUE(fixture.store.flush(30'000'000'000).ok());
    for (std::uint32_t i = 0; round > 0 && i < kAtOnce; ++i) {
      ASSERT_EQ(read[i], pages[(round - 1 + i) % pages.size()])
          << "round " << round << ", page " << i;
    }
  }
  EXPECT_EQ(control->most, kAtOnce);
  EXPECT_EQ(control->unordered, 0u);
  EXPECT_EQ(fixture.store.stats().pages_read, 7u * kAtOnce);
}

}  // namespace
}  // namespace pagoda::store
