#include "store/disk/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "skip_reasons.h"
#include "store/disk/slot_io.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using std::chrono::milliseconds;
constexpr std::int64_t kFlushNs = 10'000'000'000;

std::string slab_path(const DiskOptions& options) {
  const SlotGeometry geometry = {options.page_bytes, options.block_tokens};
  return options.path + "/" + geometry.file_stem() + std::string(kSlabSuffix);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A Way is io_uring or threads, plain or encrypted.
struct Way {
  bool use_uring;
  bool is_encrypted;
};

class DiskStoreWays : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam().use_uring && make_uring_io(1) == nullptr) {
      GTEST_SKIP() << kNeedsUring << ": the kernel refuses it, or it was not built in";
    }
  }
  DiskOptions options(std::uint64_t slots) {
    DiskOptions options = fixture_options(folder_.path() + "/kv", slots);
    options.use_uring = GetParam().use_uring;
    if (GetParam().is_encrypted) {
      options.key_file = folder_.path() + "/key";
      std::ofstream(options.key_file) << std::string(64, 'a') << "\n";
      ::chmod(options.key_file.c_str(), 0600);
    }
    return options;
  }
  TemporaryFolder folder_;
};

TEST_P(DiskStoreWays, ManyPagesAtOnceComeBackAndAreThereAfterARestart) {
  const DiskOptions disk = options(300);
  constexpr std::uint64_t kPages = 200;
  std::vector<std::vector<std::byte>> pages;
  for (std::uint64_t i = 0; i < kPages; ++i) pages.push_back(sample_page(i, 0, disk.page_bytes));
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    std::vector<kv::StoreTicket> tickets;
    for (std::uint64_t i = 0; i < kPages; ++i) {
      tickets.push_back(fixture.next_ticket());
      ASSERT_TRUE(fixture.store().write({tickets.back(), sample_label(i, 4), pages[i]}));
    }
    for (const kv::StoreTicket ticket : tickets) {
      EXPECT_EQ(fixture.report_of(ticket).fault, StoreFault::kNone);
    }
    EXPECT_EQ(fixture.store().stats().pages, kPages);
  }
  StoreFixture fixture(disk);
  std::vector<std::vector<std::byte>> read(kPages, std::vector<std::byte>(disk.page_bytes));
  std::vector<kv::StoreTicket> tickets;
  EXPECT_TRUE(fixture.finds(0)) << "waits for the index";
  for (std::uint64_t i = 0; i < kPages; ++i) {
    tickets.push_back(fixture.next_ticket());
    fixture.store().read({tickets.back(), sample_label(i, 4), read[i]});
  }
  for (const kv::StoreTicket ticket : tickets) {
    EXPECT_EQ(fixture.report_of(ticket).fault, StoreFault::kNone);
  }
  EXPECT_EQ(read, pages);
  EXPECT_EQ(fixture.store().stats().pages_read, kPages);
  EXPECT_EQ(fixture.store().stats().requests_queued, 0u);
}

TEST_P(DiskStoreWays, NoLookupIsLostWhileTheIndexComes) {
  const DiskOptions disk = options(8);
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  }
  const kv::PageKey key = sample_label(1, disk.block_tokens).key;
  for (int round = 0; round < 20; ++round) {
    StoreFixture fixture(disk);
    std::vector<kv::StoreTicket> waiting;
    for (std::optional<std::size_t> found; !found;) {
      const kv::StoreTicket ticket = fixture.next_ticket();
      found = fixture.store().find(ticket, std::span(&key, 1));
      if (found) break;
      waiting.push_back(ticket);
      std::this_thread::yield();  // whoever loads the index needs the store's lock
    }
    for (const kv::StoreTicket ticket : waiting) {
      ASSERT_EQ(fixture.report_of(ticket).keys_found, 1u) << "round " << round;
    }
  }
}

TEST_P(DiskStoreWays, ThePlainBytesAreOnDiskOnlyWithoutAKey) {
  const DiskOptions disk = options(8);
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  }
  const std::string slab = bytes_of(slab_path(disk));
  const bool has_page = slab.find(text_of(sample_page(1, 0, 64))) != std::string::npos;
  const kv::PageLabel label = sample_label(1, 4);
  const bool has_tokens =
      slab.find(text_of(std::as_bytes(std::span(label.tokens)))) != std::string::npos;
  EXPECT_EQ(has_page, !GetParam().is_encrypted);
  EXPECT_EQ(has_tokens, !GetParam().is_encrypted);
}

TEST_P(DiskStoreWays, AFlippedBitIsADamagedPageAndThenAMiss) {
  const DiskOptions disk = options(8);
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
    ASSERT_EQ(fixture.write(2), StoreFault::kNone);
  }
  {
    std::fstream slab(slab_path(disk), std::ios::in | std::ios::out | std::ios::binary);
    slab.seekp(2000);
    slab.put(static_cast<char>(slab.peek() ^ 4));
  }
  StoreFixture fixture(disk);
  fixture.wait_until_ready();
  EXPECT_EQ(fixture.read(1), StoreFault::kDamaged);
  EXPECT_EQ(fixture.read(1), StoreFault::kAbsent);
  EXPECT_EQ(fixture.read(2), StoreFault::kNone);
  EXPECT_EQ(fixture.store().stats().faults[static_cast<std::size_t>(StoreFault::kDamaged)], 1u);
}

INSTANTIATE_TEST_SUITE_P(Ways, DiskStoreWays,
                         testing::Values(Way{true, false}, Way{true, true}, Way{false, false},
                                         Way{false, true}));

TEST(DiskStore, APageIsGivenToNobodyWhoAsksForAnother) {
  const TemporaryFolder folder;
  StoreFixture fixture(fixture_options(folder.path()));
  fixture.wait_until_ready();
  ASSERT_EQ(fixture.write(1, 5), StoreFault::kNone);
  kv::PageLabel other_tokens = sample_label(1, 4, 5);
  other_tokens.tokens[2] = TokenId(7);
  kv::PageLabel other_parent = sample_label(1, 4, 5);
  other_parent.parent = {};
  kv::PageLabel fewer_tokens = sample_label(1, 3, 5);
  EXPECT_EQ(fixture.read(1, other_tokens), StoreFault::kForeign);
  EXPECT_EQ(fixture.read(1, other_parent), StoreFault::kForeign);
  EXPECT_EQ(fixture.read(1, fewer_tokens), StoreFault::kForeign);
  EXPECT_EQ(fixture.read(1, sample_label(1, 4, 6)), StoreFault::kForeign);
  EXPECT_EQ(fixture.read(1, 5), StoreFault::kNone) << "and it is still there for its owner";
  kv::PageLabel other_space = sample_label(1, 4, 5);
  other_space.key.space.digest[9] = std::byte{1};
  EXPECT_EQ(fixture.read(1, other_space), StoreFault::kAbsent);
}

TEST(DiskStore, TheLeastRecentlyUsedAreEvictedAndTheFilesStayWithinTheLimit) {
  const TemporaryFolder folder;
  const DiskOptions disk = fixture_options(folder.path(), 8);
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
    EXPECT_EQ(fixture.read(0), StoreFault::kNone);
    EXPECT_TRUE(fixture.store().keeps(sample_label(1, 4).key));
  }
  StoreFixture fixture(disk);  // uses are remembered
  fixture.wait_until_ready();
  for (std::uint64_t i = 8; i < 14; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
  for (std::uint64_t i = 0; i < 14; ++i) EXPECT_EQ(fixture.finds(i), i < 2 || i >= 8) << i;
  EXPECT_EQ(fixture.store().stats().pages_evicted, 6u);
  EXPECT_EQ(fixture.store().stats().pages_evicted_unread, 6u);
  EXPECT_LE(fixture.store().stats().bytes_used, disk.bytes_max);
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    bytes += file.file_size();
  }
  EXPECT_LE(bytes, disk.bytes_max);
}

TEST(DiskStore, SlabsOfOtherPageSizesShareTheLimitAndAreCutToHalf) {
  const TemporaryFolder folder;
  DiskOptions disk = fixture_options(folder.path(), 40);
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    for (std::uint64_t i = 0; i < 40; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
  }
  DiskOptions other = disk;
  other.page_bytes = 3000;
  {
    StoreFixture fixture(other);
    fixture.wait_until_ready();
    for (std::uint64_t i = 0; i < 200; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
    EXPECT_GT(fixture.store().stats().pages, 10u);
    EXPECT_LE(fixture.store().stats().bytes_used, disk.bytes_max);
  }
  StoreFixture fixture(disk);
  fixture.wait_until_ready();
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < 40; ++i) found += fixture.read(i) == StoreFault::kNone ? 1 : 0;
  EXPECT_GE(found, 12u);
  EXPECT_LE(found, 20u);
}

TEST(DiskStore, ARemovedOwnersBytesAreGoneFromTheDiskAndNobodyElses) {
  const TemporaryFolder folder;
  const DiskOptions disk = fixture_options(folder.path());
  StoreFixture fixture(disk);
  fixture.wait_until_ready();
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_EQ(fixture.write(i, i % 2), StoreFault::kNone);
  const Result<kv::Removal> removed = fixture.store().remove(sample_owner(1));
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed.value().pages, 10u);
  EXPECT_TRUE(removed.value().overwritten);
  const std::string slab = bytes_of(slab_path(disk));
  for (std::uint64_t i = 0; i < 20; ++i) {
    const bool is_there = slab.find(text_of(sample_page(i, 0, 64))) != std::string::npos;
    EXPECT_EQ(is_there, i % 2 == 0) << i;
    EXPECT_EQ(fixture.read(i, i % 2), i % 2 == 0 ? StoreFault::kNone : StoreFault::kAbsent);
  }
  const Result<kv::Removal> all = fixture.store().remove_all();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all.value().pages, 10u);
  EXPECT_EQ(fixture.store().stats().pages, 0u);
}

// The files hold what a kill would leave: the test opens a copy of them.
TEST(DiskStore, AWriteIsDurableAfterAFlushAndByItselfWithinASecond) {
  const TemporaryFolder folder;
  DiskOptions disk = fixture_options(folder.path() + "/kv");
  StoreFixture fixture(disk);
  fixture.wait_until_ready();
  const auto copy_holds = [&](const std::string& name, std::uint64_t page) {
    DiskOptions copy = disk;
    copy.path = folder.path() + "/" + name;
    std::filesystem::copy(disk.path, copy.path);
    StoreFixture other(copy);
    other.wait_until_ready();
    return other.read(page) == StoreFault::kNone;
  };
  ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  ASSERT_TRUE(fixture.store().flush(kFlushNs).ok());
  EXPECT_TRUE(copy_holds("flushed", 1));
  ASSERT_EQ(fixture.write(2), StoreFault::kNone);
  std::this_thread::sleep_for(milliseconds(800));
  // A busy host may take longer over a sync.
  bool is_held = false;
  for (int i = 0; i < 5 && !is_held; ++i) {
    is_held = copy_holds("waited" + std::to_string(i), 2);
    if (!is_held) std::this_thread::sleep_for(milliseconds(200));
  }
  EXPECT_TRUE(is_held);
}

TEST(DiskStore, ATruncatedSlabLosesItsEndOnly) {
  const TemporaryFolder folder;
  const DiskOptions disk = fixture_options(folder.path(), 16);
  {
    StoreFixture fixture(disk);
    fixture.wait_until_ready();
    for (std::uint64_t i = 0; i < 16; ++i) ASSERT_EQ(fixture.write(i), StoreFault::kNone);
  }
  std::filesystem::resize_file(slab_path(disk), 8192 * 5 + 100);
  StoreFixture fixture(disk);
  fixture.wait_until_ready();
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < 16; ++i) found += fixture.read(i) == StoreFault::kNone ? 1 : 0;
  EXPECT_EQ(found, 5u);
}

TEST(DiskStore, FilesThatAreNotOursAndOtherKeysAreRefusedWithTheirName) {
  const TemporaryFolder folder;
  const DiskOptions disk = fixture_options(folder.path() + "/kv");
  std::filesystem::create_directory(disk.path);
  const std::string index = std::filesystem::path(slab_path(disk)).replace_extension(".index");
  std::ofstream(index) << "a poem\nof two lines, which nobody may overwrite, whatever it takes\n";
  const auto foreign = DiskStore::open(disk);
  ASSERT_FALSE(foreign.ok());
  EXPECT_THAT(foreign.error().message, testing::HasSubstr("not a Pagoda index"));
  EXPECT_THAT(bytes_of(index), testing::StartsWith("a poem"));
  std::filesystem::remove(index);

  { ASSERT_TRUE(DiskStore::open(disk).ok()); }
  DiskOptions keyed = disk;
  keyed.key_file = folder.path() + "/key";
  std::ofstream(keyed.key_file) << std::string(32, 'x');
  const auto readable = DiskStore::open(keyed);
  ASSERT_FALSE(readable.ok());
  EXPECT_THAT(readable.error().message, testing::HasSubstr("others may read it"));
  ::chmod(keyed.key_file.c_str(), 0600);
  const auto other_key = DiskStore::open(keyed);
  ASSERT_FALSE(other_key.ok());
  EXPECT_THAT(other_key.error().message, testing::HasSubstr("written without a key"));
}

TEST(DiskStore, ALimitWithoutRoomForASlotIsRefusedWithBothNumbers) {
  const TemporaryFolder folder;
  DiskOptions disk = fixture_options(folder.path());
  disk.bytes_max = 10'000;
  const auto opened = DiskStore::open(disk);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message,
              testing::AllOf(testing::HasSubstr("10,000"), testing::HasSubstr("8,192")));
}

TEST(DiskStore, TheFolderIsForItsOwnerAlone) {
  const TemporaryFolder folder;
  const DiskOptions disk = fixture_options(folder.path() + "/a/kv");
  ASSERT_TRUE(DiskStore::open(disk).ok());
  struct stat now = {};
  ASSERT_EQ(::stat(disk.path.c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777, 0700u);
}

}  // namespace
}  // namespace pagoda::store
