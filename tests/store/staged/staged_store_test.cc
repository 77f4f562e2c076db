#include "store/staged/staged_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "engine/tiers/scripted_store.h"
#include "store/host/host_store.h"
#include "store/page_samples.h"
#include "store/test_page_copier.h"

namespace pagoda::store {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kSlots = 8;

using kv::StoreFault;

// The fixture has pages of a pool, and a store in main memory that is reached through slots.
struct Fixture {
  explicit Fixture(std::uint64_t pages_behind = 64)
      : Fixture(HostStore::open({.bytes_max = pages_behind * kPage, .page_bytes = kPage},
                                kv::memory_copier())
                    .value()) {}
  explicit Fixture(std::unique_ptr<kv::PageStore> behind)
      : store(StagedStore::open(std::move(behind), std::make_unique<TestCopier>(control),
                                {.page_bytes = kPage, .slots = kSlots})
                  .value()) {}
  ~Fixture() { control->hold(false); }

  void poll() {
    std::vector<kv::StoreReport> reports;
    store->poll(reports);
    for (const kv::StoreReport& report : reports) {
      EXPECT_TRUE(faults.emplace(report.ticket, report.fault).second) << "reported twice";
    }
  }
  StoreFault wait(kv::StoreTicket ticket) {
    for (int i = 0; i < 5000 && !faults.contains(ticket); ++i) {
      poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(faults.contains(ticket)) << "ticket " << ticket << " was never reported";
    return faults[ticket];
  }
  kv::StoreTicket write(std::uint64_t number) {
    std::vector<std::byte>& page = pages[++tickets];
    page = sample_page(number, kPage);
    return store->write({tickets, sample_label(number), page}) ? tickets : 0;
  }
  kv::StoreTicket read(std::uint64_t number) {
    std::vector<std::byte>& page = pages[++tickets];
    page.assign(kPage, std::byte{0xEE});
    store->read({tickets, sample_label(number), page});
    return tickets;
  }
  bool keep(std::uint64_t number) {
    const kv::StoreTicket ticket = write(number);
    return ticket != 0 && wait(ticket) == StoreFault::kNone;
  }

  std::shared_ptr<CopierControl> control = std::make_shared<CopierControl>();
  std::unique_ptr<StagedStore> store;
  kv::StoreTicket tickets = 0;
  std::map<kv::StoreTicket, std::vector<std::byte>> pages;
  std::map<kv::StoreTicket, StoreFault> faults;
};

TEST(StagedStore, WhatTheStoreBehindRefusesNowWaitsAndIsWritten) {
  auto behind = std::make_unique<engine::ScriptedStore>();
  engine::ScriptedStore& scripted = *behind;
  scripted.is_busy = true;
  Fixture fixture(std::move(behind));
  const kv::StoreTicket one = fixture.write(1);
  const kv::StoreTicket two = fixture.write(2);
  while (fixture.control->pages < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 20; ++i) {
    fixture.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(fixture.faults.empty());
  scripted.is_busy = false;
  EXPECT_EQ(fixture.wait(one), StoreFault::kNone);
  EXPECT_EQ(fixture.wait(two), StoreFault::kNone);
  EXPECT_EQ(scripted.pages.at(sample_label(1).key).bytes, sample_page(1, kPage));
  EXPECT_EQ(scripted.pages.at(sample_label(2).key).bytes, sample_page(2, kPage));
}

TEST(StagedStore, ThereAndBackIsTheSameBytes) {
  Fixture fixture;
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(fixture.keep(i));
  std::vector<kv::StoreTicket> reads;
  for (std::uint64_t i = 0; i < 40; ++i) reads.push_back(fixture.read(i));
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(fixture.wait(reads[i]), StoreFault::kNone);
    ASSERT_EQ(fixture.pages[reads[i]], sample_page(i, kPage));
  }
  EXPECT_EQ(fixture.control->pages, 80u);
  EXPECT_EQ(fixture.control->unordered, 0u);
  EXPECT_EQ(fixture.store->stats().requests_queued, 0u);
}

TEST(StagedStore, WhatIsAbsentIsNotMoved) {
  Fixture fixture;
  const kv::StoreTicket ticket = fixture.read(7);
  EXPECT_EQ(fixture.wait(ticket), StoreFault::kAbsent);
  EXPECT_EQ(fixture.pages[ticket], std::vector<std::byte>(kPage, std::byte{0xEE}));
  EXPECT_EQ(fixture.control->pages, 0u);
}

TEST(StagedStore, WritesLeaveHalfOfTheSlotsToReads) {
  Fixture fixture;
  ASSERT_TRUE(fixture.keep(100));
  fixture.control->hold(true);
  std::uint32_t taken = 0;
  for (std::uint64_t i = 0; i < kSlots; ++i) taken += fixture.write(i) != 0 ? 1 : 0;
  EXPECT_EQ(taken, kSlots / 2);
  const kv::StoreTicket ticket = fixture.read(100);
  fixture.control->hold(false);
  EXPECT_EQ(fixture.wait(ticket), StoreFault::kNone);
  EXPECT_EQ(fixture.pages[ticket], sample_page(100, kPage));
}

TEST(StagedStore, ReadsBeyondTheSlotsWaitAndCanBeCancelled) {
  Fixture fixture;
  for (std::uint64_t i = 0; i < 3 * kSlots; ++i) ASSERT_TRUE(fixture.keep(i));
  fixture.control->hold(true);
  std::vector<kv::StoreTicket> reads;
  for (std::uint64_t i = 0; i < 3 * kSlots; ++i) reads.push_back(fixture.read(i));
  const std::span<const kv::StoreTicket> last(reads.end() - 2, reads.end());
  fixture.store->cancel(last);
  fixture.control->hold(false);
  for (std::uint64_t i = 0; i < reads.size(); ++i) {
    const bool cancelled = i + 2 >= reads.size();
    ASSERT_EQ(fixture.wait(reads[i]), cancelled ? StoreFault::kCancelled : StoreFault::kNone);
    if (cancelled) continue;
    ASSERT_EQ(fixture.pages[reads[i]], sample_page(i, kPage));
  }
}

TEST(StagedStore, AMoveThatFailsIsAMissAndGivesItsSlotBack) {
  Fixture fixture;
  fixture.control->fail_calls = 1;
  EXPECT_EQ(fixture.wait(fixture.write(1)), StoreFault::kIo);
  EXPECT_FALSE(fixture.store->keeps(sample_label(1).key));
  ASSERT_TRUE(fixture.keep(2));
  fixture.control->fail_calls = 1;
  EXPECT_EQ(fixture.wait(fixture.read(2)), StoreFault::kIo);
  for (std::uint64_t i = 0; i < 2 * kSlots; ++i) {
    const kv::StoreTicket ticket = fixture.read(2);
    ASSERT_EQ(fixture.wait(ticket), StoreFault::kNone);
    ASSERT_EQ(fixture.pages[ticket], sample_page(2, kPage));
  }
  EXPECT_EQ(fixture.store->stats().faults[static_cast<std::size_t>(StoreFault::kIo)], 2u);
}

TEST(StagedStore, ADeviceThatIsLostTakesAndGivesNothing) {
  Fixture fixture;
  ASSERT_TRUE(fixture.keep(1));
  fixture.control->refuse_order = true;
  EXPECT_EQ(fixture.wait(fixture.write(2)), StoreFault::kIo);
  EXPECT_EQ(fixture.wait(fixture.read(1)), StoreFault::kIo);
  EXPECT_EQ(fixture.control->pages, 1u);
}

TEST(StagedStore, WhatTheStoreBehindRefusesIsReported) {
  Fixture fixture(0);
  EXPECT_EQ(fixture.wait(fixture.write(1)), StoreFault::kNoRoom);
  EXPECT_EQ(fixture.store->stats().requests_queued, 0u);
}

TEST(StagedStore, NotifiesWhenAPageHasArrived) {
  Fixture fixture;
  std::atomic<int> rings{0};
  fixture.store->on_report([&] { ++rings; });
  ASSERT_TRUE(fixture.keep(1));
  for (int i = 0; i < 5000 && rings < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(rings, 2);  // one when copied out, one when the store behind took it
}

}  // namespace
}  // namespace pagoda::store
