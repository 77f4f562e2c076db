// Tests a store whose limit became smaller, and the default limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "base/random.h"
#include "store/disk/faulty_disk.h"
#include "store/disk/slab_shrink.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

constexpr std::uint64_t kSlabPages = 16;

// Writes pages in order, then uses some of them again, by seed. Returns all, most recently used
// first.
std::vector<std::uint64_t> fill(StoreFixture& fixture, std::uint64_t seed) {
  fixture.wait_until_ready();
  std::vector<std::uint64_t> order(kSlabPages);
  std::iota(order.begin(), order.end(), 0);
  for (const std::uint64_t page : order)
    EXPECT_EQ(fixture.write(page, page % 2), StoreFault::kNone);
  for (std::uint64_t i = 0; i < 2 * kSlabPages; ++i) {
    const std::uint64_t page = random_bits(seed, 7, i) % kSlabPages;
    EXPECT_EQ(fixture.read(page, page % 2), StoreFault::kNone);
    order.erase(std::find(order.begin(), order.end(), page));
    order.push_back(page);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

TEST(SlabShrink, DropsThePagesThatWereUsedLongestAgo) {
  for (std::uint64_t slots = 1; slots <= kSlabPages; slots += slots < 4 ? 1 : 3) {
    FaultyDisk disk(slots);
    std::vector<std::uint64_t> order;
    {
      StoreFixture fixture(fixture_options("/simulated", kSlabPages), disk.layer());
      order = fill(fixture, slots);
    }
    for (int start = 0; start < 2; ++start) {
      StoreFixture fixture(fixture_options("/simulated", slots), disk.layer());
      fixture.wait_until_ready();
      EXPECT_EQ(fixture.store().stats().pages, slots);
      for (std::uint64_t i = 0; i < kSlabPages; ++i) {
        ASSERT_EQ(fixture.finds(order[i]), i < slots) << i << " of " << slots;
      }
      for (std::uint64_t i = 0; i < slots; ++i) {
        ASSERT_EQ(fixture.read(order[slots - 1 - i], order[slots - 1 - i] % 2), StoreFault::kNone);
      }
    }
    const DiskOptions limit = fixture_options("/simulated", slots);
    EXPECT_LE(disk.bytes(), limit.bytes_max) << slots;
  }
}

TEST(SlabShrink, ASlabOfAnotherPageSizeLosesWhatWasUsedLongestAgoToo) {
  const TemporaryFolder folder;
  DiskOptions options = fixture_options(folder.path(), kSlabPages);
  std::vector<std::uint64_t> order;
  {
    StoreFixture fixture(options);
    order = fill(fixture, 5);
  }
  DiskOptions other = options;
  other.block_tokens = 8;
  {
    StoreFixture fixture(other);  // slabs of other page sizes are cut to half
    fixture.wait_until_ready();
  }
  StoreFixture fixture(options);
  fixture.wait_until_ready();
  const std::uint64_t left = fixture.store().stats().pages;
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, kSlabPages);
  for (std::uint64_t i = 0; i < kSlabPages; ++i) EXPECT_EQ(fixture.finds(order[i]), i < left) << i;
}

// Pages may be lost; none is another's, and removed pages are gone from every sector.
TEST(SlabShrink, ACrashOnTheWayMakesNoPageWrong) {
  for (std::int64_t at = 0; at < 400; ++at) {
    FaultyDisk disk(static_cast<std::uint64_t>(at));
    const DiskOptions large = fixture_options("/simulated", kSlabPages);
    const DiskOptions small = fixture_options("/simulated", 6);
    {
      StoreFixture fixture(large, disk.layer());
      fill(fixture, 3);
    }
    disk.changes_until_crash = at;
    {
      auto shrunk = DiskStore::open(small, disk.layer());
      if (!disk.is_dead() && shrunk.ok()) return;  // done before the disk could crash
    }
    disk.crash();
    disk.changes_until_crash = -1;
    StoreFixture fixture(at % 2 == 0 ? large : small, disk.layer());
    fixture.wait_until_ready();
    if (at % 3 != 0) {
      for (std::uint64_t page = 0; page < kSlabPages; ++page) fixture.read(page, page % 2);
    }
    ASSERT_TRUE(fixture.store().remove(sample_owner(1)).ok());
    for (std::uint64_t page = 1; page < kSlabPages; page += 2) {
      const std::vector<std::byte> bytes = sample_page(page, 0, large.page_bytes);
      const std::string part(reinterpret_cast<const char*>(bytes.data()) + 1024, 256);
      ASSERT_FALSE(disk.holds(part)) << "page " << page << ", crash at " << at;
    }
  }
  FAIL() << "shrinking took more changes than were tried";
}

TEST(DiskLimit, DoesNotDependOnHowFullTheStoreItselfIs) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  struct Case {
    std::uint64_t disk, limit;
  };
  for (const Case& each : {Case{50 * kGiB, 5 * kGiB}, Case{400 * kGiB, 20 * kGiB},
                           Case{1000 * kGiB, 20 * kGiB}, Case{10, 1}}) {
    std::uint64_t taken = 0;
    for (int start = 0; start < 5; ++start) {
      const std::uint64_t limit = default_disk_bytes(each.disk - taken, taken);
      EXPECT_EQ(limit, each.limit) << each.disk << ", start " << start;
      taken = limit;  // the store fills up before the next start
    }
  }
}

TEST(DiskLimit, CountsWhatTheStoresFilesTakeOnDisk) {
  const TemporaryFolder folder;
  EXPECT_EQ(bytes_taken(folder.path() + "/none"), 0u);
  EXPECT_EQ(bytes_taken(folder.path()), 0u);
  const DiskOptions options = fixture_options(folder.path(), 1000);
  {
    StoreFixture fixture(options);
    fixture.wait_until_ready();
    for (std::uint64_t page = 0; page < 20; ++page)
      ASSERT_EQ(fixture.write(page), StoreFault::kNone);
  }
  std::ofstream(folder.path() + "/notes.txt") << std::string(1 << 20, 'x');  // not ours
  const std::uint64_t slots = 20 * SlotGeometry{options.page_bytes, 4}.slot_bytes();
  EXPECT_GE(bytes_taken(folder.path()), slots);
  EXPECT_LT(bytes_taken(folder.path()), slots + (300 << 10)) << "the slab has holes";
}

}  // namespace
}  // namespace pagoda::store
