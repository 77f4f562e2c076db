// The disk is slow, full, failing or another process's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/disk/faulty_disk.h"
#include "store/disk/gated_files.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::uint64_t faults_of(DiskStore& store, StoreFault fault) {
  return store.stats().faults[static_cast<std::size_t>(fault)];
}

TEST(DiskTrouble, ALookupWaitsForTheIndexAndThenForASecondAtMost) {
  FaultyDisk disk(1);
  const DiskOptions options = fixture_options("/simulated");
  {
    StoreFixture fixture(options, disk.layer());
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  }
  Gate gate;
  gate.shut();
  StoreFixture fixture(options, gated_files(disk.layer(), gate));
  const kv::PageKey key = sample_label(1, 4).key;
  EXPECT_FALSE(fixture.store().stats().is_ready);
  EXPECT_FALSE(fixture.store().keeps(key));
  const auto asked = steady_clock::now();
  EXPECT_EQ(fixture.store().find(900, std::span(&key, 1)), std::nullopt);
  EXPECT_EQ(fixture.report_of(900).keys_found, 0u);
  const auto waited = steady_clock::now() - asked;
  EXPECT_GE(waited, milliseconds(950));
  EXPECT_LE(waited, milliseconds(1800));

  EXPECT_EQ(fixture.store().find(901, std::span(&key, 1)), std::nullopt);
  gate.open();
  EXPECT_EQ(fixture.report_of(901).keys_found, 1u) << "answered when the index was there";
  EXPECT_EQ(fixture.store().find(902, std::span(&key, 1)), 1u) << "and at once from then on";
}

TEST(DiskTrouble, ReadsThatFailSwitchItOffAndARetrySwitchesItOn) {
  FaultyDisk disk(2);
  DiskOptions options = fixture_options("/simulated");
  options.failures_max = 3;
  options.retry_after_ns = 300'000'000;
  StoreFixture fixture(options, disk.layer());
  fixture.wait_until_ready();
  ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  disk.faults.read_error = 1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fixture.read(1), StoreFault::kIo);
  EXPECT_FALSE(fixture.store().stats().is_on);
  EXPECT_THAT(fixture.store().stats().condition, testing::HasSubstr("Input/output error"));
  EXPECT_EQ(fixture.read(1), StoreFault::kOff);
  EXPECT_FALSE(fixture.finds(1));
  EXPECT_EQ(faults_of(fixture.store(), StoreFault::kIo), 3u);
  std::this_thread::sleep_for(milliseconds(320));
  EXPECT_EQ(fixture.read(1), StoreFault::kIo) << "it tries again";
  EXPECT_EQ(fixture.read(1), StoreFault::kOff) << "once";
  disk.faults = {};
  std::this_thread::sleep_for(milliseconds(320));
  EXPECT_EQ(fixture.read(1), StoreFault::kNone);
  EXPECT_TRUE(fixture.store().stats().is_on);
  EXPECT_EQ(fixture.store().stats().condition, "");
}

TEST(DiskTrouble, OnAFullDiskNewPagesReplaceOldOnes) {
  FaultyDisk disk(3);
  StoreFixture fixture(fixture_options("/simulated"), disk.layer());
  fixture.wait_until_ready();
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
  ASSERT_TRUE(fixture.store().flush(1'000'000'000).ok());
  disk.faults.is_full = true;
  EXPECT_EQ(fixture.write(4), StoreFault::kNoRoom);
  EXPECT_EQ(fixture.write(5), StoreFault::kNone);
  EXPECT_FALSE(fixture.finds(0));
  EXPECT_EQ(fixture.read(5), StoreFault::kNone);
  EXPECT_EQ(fixture.read(3), StoreFault::kNone);
  EXPECT_EQ(faults_of(fixture.store(), StoreFault::kNoRoom), 1u);
}

TEST(DiskTrouble, ADiskThatTurnsReadOnlyStillGivesPages) {
  FaultyDisk disk(4);
  DiskOptions options = fixture_options("/simulated");
  options.failures_max = 2;
  StoreFixture fixture(options, disk.layer());
  fixture.wait_until_ready();
  ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  disk.faults.is_read_only = true;
  EXPECT_EQ(fixture.write(2), StoreFault::kIo);
  EXPECT_EQ(fixture.write(3), StoreFault::kIo);
  EXPECT_EQ(fixture.write(4), StoreFault::kOff) << "refused at once";
  EXPECT_EQ(fixture.read(1), StoreFault::kNone);
  EXPECT_TRUE(fixture.store().stats().is_on);
  EXPECT_THAT(fixture.store().stats().condition, testing::HasSubstr("Read-only"));
}

TEST(DiskTrouble, AStoreOnAReadOnlyFileSystemOpensToBeRead) {
  FaultyDisk disk(8);
  const DiskOptions options = fixture_options("/simulated");
  {
    StoreFixture fixture(options, disk.layer());
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  }
  disk.faults.is_read_only = true;
  StoreFixture fixture(options, disk.layer());
  fixture.wait_until_ready();
  EXPECT_EQ(fixture.read(1), StoreFault::kNone);
  EXPECT_EQ(fixture.write(2), StoreFault::kOff);
  EXPECT_EQ(fixture.store().stats().condition, "the file system is read-only");
  EXPECT_FALSE(fixture.store().remove_all().ok());
}

TEST(DiskTrouble, AFlushSaysThatASyncFailedAndWhatItCostIsNotFoundAgain) {
  FaultyDisk disk(5);
  DiskOptions options = fixture_options("/simulated");
  options.commit_after_ns = 3'600'000'000'000;  // only flush() commits
  StoreFixture fixture(options, disk.layer());
  fixture.wait_until_ready();
  ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  ASSERT_TRUE(fixture.store().flush(1'000'000'000).ok());
  ASSERT_EQ(fixture.write(2), StoreFault::kNone);
  disk.faults.sync_error = 1;
  EXPECT_FALSE(fixture.store().flush(1'000'000'000).ok());
  disk.faults = {};
  EXPECT_FALSE(fixture.finds(2)) << "its bytes may be lost, and no later sync would say so";
  EXPECT_EQ(fixture.read(1), StoreFault::kNone);
  EXPECT_FALSE(fixture.store().flush(1'000'000'000).ok()) << "said once";
  EXPECT_TRUE(fixture.store().flush(1'000'000'000).ok());
}

TEST(DiskTrouble, AReadThatHangsEndsWithATimeoutAndTouchesThePageNoMore) {
  FaultyDisk disk(6);
  DiskOptions options = fixture_options("/simulated");
  options.request_limit_ns = 200'000'000;
  Gate gate;
  StoreFixture fixture(options, gated_files(disk.layer(), gate));
  fixture.wait_until_ready();
  ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  ASSERT_EQ(fixture.write(2), StoreFault::kNone);
  gate.shut();
  std::vector<std::byte> page(options.page_bytes);
  fixture.store().read({800, sample_label(2, 4), page});
  EXPECT_EQ(fixture.report_of(800).fault, StoreFault::kTimeout);
  gate.open();
  EXPECT_EQ(fixture.read(2), StoreFault::kNone);
  EXPECT_EQ(page, std::vector<std::byte>(options.page_bytes));
}

TEST(DiskTrouble, ReadsThatHaveNotBegunCanBeCancelledAndTooManyWritesAreRefused) {
  const TemporaryFolder folder;
  DiskOptions options = fixture_options(folder.path());
  options.writes_waiting_max = 4;
  options.staging_bytes_max = 1;        // one request at a time
  options.bytes_per_s_max = 8192 * 20;  // 50 ms a page
  StoreFixture fixture(options);
  fixture.wait_until_ready();
  ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  std::vector<std::vector<std::byte>> pages(6, std::vector<std::byte>(options.page_bytes));
  std::vector<kv::StoreTicket> tickets;
  for (std::vector<std::byte>& page : pages) {
    tickets.push_back(fixture.next_ticket());
    fixture.store().read({tickets.back(), sample_label(1, 4), page});
  }
  fixture.store().cancel(std::span(tickets).subspan(1));
  EXPECT_EQ(fixture.report_of(tickets[0]).fault, StoreFault::kNone);
  for (std::size_t i = 2; i < tickets.size(); ++i) {
    EXPECT_EQ(fixture.report_of(tickets[i]).fault, StoreFault::kCancelled);
  }
  const std::vector<std::byte> page = sample_page(9, 0, options.page_bytes);
  int accepted = 0;
  tickets.clear();
  for (std::uint64_t i = 0; i < 10; ++i) {
    const kv::StoreTicket ticket = fixture.next_ticket();
    if (!fixture.store().write({ticket, sample_label(20 + i, 4), page})) continue;
    tickets.push_back(ticket);
    ++accepted;
  }
  EXPECT_GE(accepted, 4);
  EXPECT_LE(accepted, 6);
  EXPECT_TRUE(fixture.store().keeps(sample_label(20, 4).key))
      << "a write under way is no new write";
  for (const kv::StoreTicket ticket : tickets) fixture.report_of(ticket);
}

TEST(DiskTrouble, TheScrubFindsDamageWhileNothingRunsAndOnlyThen) {
  FaultyDisk disk(7);
  DiskOptions options = fixture_options("/simulated");
  options.scrub_bytes_per_s = 100'000'000;
  StoreFixture fixture(options, disk.layer());
  fixture.wait_until_ready();
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
  ASSERT_TRUE(fixture.store().flush(1'000'000'000).ok());
  std::this_thread::sleep_for(milliseconds(20));
  disk.damage_slab(8192 * 7 + 500);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(fixture.store().stats().pages, 20u);
  fixture.store().set_idle(true);
  for (int i = 0; i < 200 && fixture.store().stats().pages == 20; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(fixture.store().stats().pages, 19u);
  EXPECT_EQ(faults_of(fixture.store(), StoreFault::kDamaged), 1u);
}

TEST(DiskTrouble, ASecondProcessIsToldThatTheStoreIsInUse) {
  const TemporaryFolder folder;
  const DiskOptions options = fixture_options(folder.path());
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = DiskStore::open(options);
    const char state = store.ok() ? 'y' : 'n';
    if (::write(ready[1], &state, 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char state = 0;
  ASSERT_EQ(::read(ready[0], &state, 1), 1);
  EXPECT_EQ(state, 'y');
  const auto second = DiskStore::open(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(second.error().message, testing::HasSubstr("another process uses this store"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_TRUE(DiskStore::open(options).ok()) << "free again when the first is gone";
}

}  // namespace
}  // namespace pagoda::store
