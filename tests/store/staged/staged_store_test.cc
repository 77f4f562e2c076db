#include "store/staged/staged_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "engine/tiers/scripted_store.h"
#include "store/host/host_store.h"
#include "store/page_samples.h"
#include "store/test_mover.h"

namespace pagoda::store {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kSlots = 8;

using kv::StoreFault;

// Pages of a pool, and a store in main memory that is reached through slots.
struct Desk {
  explicit Desk(std::uint64_t pages_behind = 64)
      : Desk(HostStore::open({.bytes_max = pages_behind * kPage, .page_bytes = kPage},
                             kv::memory_mover())
                 .value()) {}
  explicit Desk(std::unique_ptr<kv::PageStore> behind)
      : store(StagedStore::open(std::move(behind), std::make_unique<TestMover>(control),
                                {.page_bytes = kPage, .slots = kSlots})
                  .value()) {}
  ~Desk() { control->hold(false); }

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

  std::shared_ptr<MoverControl> control = std::make_shared<MoverControl>();
  std::unique_ptr<StagedStore> store;
  kv::StoreTicket tickets = 0;
  std::map<kv::StoreTicket, std::vector<std::byte>> pages;
  std::map<kv::StoreTicket, StoreFault> faults;
};

TEST(StagedStore, WhatTheStoreBehindRefusesNowWaitsAndIsWritten) {
  auto behind = std::make_unique<engine::ScriptedStore>();
  engine::ScriptedStore& scripted = *behind;
  scripted.is_busy = true;
  Desk desk(std::move(behind));
  const kv::StoreTicket one = desk.write(1);
  const kv::StoreTicket two = desk.write(2);
  while (desk.control->pages < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 20; ++i) {
    desk.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(desk.faults.empty());
  scripted.is_busy = false;
  EXPECT_EQ(desk.wait(one), StoreFault::kNone);
  EXPECT_EQ(desk.wait(two), StoreFault::kNone);
  EXPECT_EQ(scripted.pages.at(sample_label(1).key).bytes, sample_page(1, kPage));
  EXPECT_EQ(scripted.pages.at(sample_label(2).key).bytes, sample_page(2, kPage));
}

TEST(StagedStore, ThereAndBackIsTheSameBytes) {
  Desk desk;
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(desk.keep(i));
  std::vector<kv::StoreTicket> reads;
  for (std::uint64_t i = 0; i < 40; ++i) reads.push_back(desk.read(i));
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(desk.wait(reads[i]), StoreFault::kNone);
    ASSERT_EQ(desk.pages[reads[i]], sample_page(i, kPage));
  }
  EXPECT_EQ(desk.control->pages, 80u);
  EXPECT_EQ(desk.control->unordered, 0u);
  EXPECT_EQ(desk.store->stats().requests_queued, 0u);
}

TEST(StagedStore, WhatIsAbsentIsNotMoved) {
  Desk desk;
  const kv::StoreTicket ticket = desk.read(7);
  EXPECT_EQ(desk.wait(ticket), StoreFault::kAbsent);
  EXPECT_EQ(desk.pages[ticket], std::vector<std::byte>(kPage, std::byte{0xEE}));
  EXPECT_EQ(desk.control->pages, 0u);
}

TEST(StagedStore, WritesLeaveHalfOfTheSlotsToReads) {
  Desk desk;
  ASSERT_TRUE(desk.keep(100));
  desk.control->hold(true);
  std::uint32_t taken = 0;
  for (std::uint64_t i = 0; i < kSlots; ++i) taken += desk.write(i) != 0 ? 1 : 0;
  EXPECT_EQ(taken, kSlots / 2);
  const kv::StoreTicket ticket = desk.read(100);
  desk.control->hold(false);
  EXPECT_EQ(desk.wait(ticket), StoreFault::kNone);
  EXPECT_EQ(desk.pages[ticket], sample_page(100, kPage));
}

TEST(StagedStore, ReadsBeyondTheSlotsWaitAndCanBeCancelled) {
  Desk desk;
  for (std::uint64_t i = 0; i < 3 * kSlots; ++i) ASSERT_TRUE(desk.keep(i));
  desk.control->hold(true);
  std::vector<kv::StoreTicket> reads;
  for (std::uint64_t i = 0; i < 3 * kSlots; ++i) reads.push_back(desk.read(i));
  const std::span<const kv::StoreTicket> last(reads.end() - 2, reads.end());
  desk.store->cancel(last);
  desk.control->hold(false);
  for (std::uint64_t i = 0; i < reads.size(); ++i) {
    const bool cancelled = i + 2 >= reads.size();
    ASSERT_EQ(desk.wait(reads[i]), cancelled ? StoreFault::kCancelled : StoreFault::kNone);
    if (cancelled) continue;
    ASSERT_EQ(desk.pages[reads[i]], sample_page(i, kPage));
  }
}

TEST(StagedStore, AMoveThatFailsIsAMissAndGivesItsSlotBack) {
  Desk desk;
  desk.control->fail_calls = 1;
  EXPECT_EQ(desk.wait(desk.write(1)), StoreFault::kIo);
  EXPECT_FALSE(desk.store->keeps(sample_label(1).key));
  ASSERT_TRUE(desk.keep(2));
  desk.control->fail_calls = 1;
  EXPECT_EQ(desk.wait(desk.read(2)), StoreFault::kIo);
  for (std::uint64_t i = 0; i < 2 * kSlots; ++i) {
    const kv::StoreTicket ticket = desk.read(2);
    ASSERT_EQ(desk.wait(ticket), StoreFault::kNone);
    ASSERT_EQ(desk.pages[ticket], sample_page(2, kPage));
  }
  EXPECT_EQ(desk.store->stats().faults[static_cast<std::size_t>(StoreFault::kIo)], 2u);
}

TEST(StagedStore, ADeviceThatIsLostTakesAndGivesNothing) {
  Desk desk;
  ASSERT_TRUE(desk.keep(1));
  desk.control->refuse_order = true;
  EXPECT_EQ(desk.wait(desk.write(2)), StoreFault::kIo);
  EXPECT_EQ(desk.wait(desk.read(1)), StoreFault::kIo);
  EXPECT_EQ(desk.control->pages, 1u);
}

TEST(StagedStore, WhatTheStoreBehindRefusesIsReported) {
  Desk desk(0);
  EXPECT_EQ(desk.wait(desk.write(1)), StoreFault::kNoRoom);
  EXPECT_EQ(desk.store->stats().requests_queued, 0u);
}

TEST(StagedStore, RingsWhenAPageHasLanded) {
  Desk desk;
  std::atomic<int> rings{0};
  desk.store->on_report([&] { ++rings; });
  ASSERT_TRUE(desk.keep(1));
  for (int i = 0; i < 5000 && rings < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(rings, 2);  // moved out; taken by the store behind
}

}  // namespace
}  // namespace pagoda::store
