// A removal reaches slabs of other page sizes in the same folder, which are not in use.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/disk/faulty_disk.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

constexpr std::uint64_t kPages = 12;  // pages of the other slab, page i of owner i % 3
constexpr std::uint64_t kLate = 8;    // pages of owner 1 that a crash may have taken

struct Other {
  std::string name;
  bool has_key = false;      // true: and the store in use has none
  bool has_crashed = false;  // true: while pages were written
};

class OtherSlabs : public testing::TestWithParam<Other> {
 protected:
  OtherSlabs() {
    other_.block_tokens = 8;
    if (!GetParam().has_key) return;
    other_.key_file = folder_.path() + "/key";
    std::ofstream(other_.key_file) << std::string(64, 'a');
    std::filesystem::permissions(other_.key_file, std::filesystem::perms::owner_read);
  }

  void fill_other() {
    StoreFixture fixture(other_, disk_.layer());
    fixture.wait_until_ready();
    for (std::uint64_t i = 0; i < kPages; ++i)
      ASSERT_EQ(fixture.write(i, i % 3), StoreFault::kNone);
    ASSERT_TRUE(fixture.store().flush(10'000'000'000).ok());
    if (!GetParam().has_crashed) return;
    disk_.changes_until_crash = 5;
    for (std::uint64_t i = kPages; i < kPages + kLate; ++i) fixture.write(i, 1);
  }
  void settle() {
    if (!GetParam().has_crashed) return;
    disk_.crash();
    disk_.changes_until_crash = -1;
  }
  // True: a byte of the page is on the disk, as it is without a key.
  bool is_on_disk(std::uint64_t page) const {
    const std::vector<std::byte> bytes = sample_page(page, 0, other_.page_bytes);
    return disk_.holds({reinterpret_cast<const char*>(bytes.data()) + 1024, 256});
  }

  // Returns the bytes that the slab's pages take.
  std::uint64_t bytes_taken() {
    const std::string name =
        SlotGeometry{other_.page_bytes, other_.block_tokens}.file_stem() + std::string(kSlabSuffix);
    for (const FileSize& file : disk_.layer()->list()) {
      if (file.name == name) return file.bytes_on_disk;
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  TemporaryFolder folder_;
  FaultyDisk disk_{7};
  DiskOptions ours_ = fixture_options("/simulated");
  DiskOptions other_ = ours_;
};

TEST_P(OtherSlabs, LoseARemovedOwnersPagesAndNobodyElses) {
  fill_other();
  settle();
  {
    StoreFixture fixture(ours_, disk_.layer());
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(100, 1), StoreFault::kNone);
    const Result<kv::Removal> removed = fixture.store().remove(sample_owner(1));
    ASSERT_TRUE(removed.ok()) << removed.error().message;
    EXPECT_GE(removed.value().pages, 1 + kPages / 3);
    EXPECT_LE(removed.value().pages, 1 + kPages / 3 + kLate);
    EXPECT_TRUE(removed.value().overwritten);
    const Result<kv::Removal> again = fixture.store().remove(sample_owner(1));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value().pages, 0u);
  }
  for (std::uint64_t i = 0; i < kPages + kLate; ++i) {
    const bool is_removed = i >= kPages || i % 3 == 1;
    EXPECT_FALSE(is_removed && is_on_disk(i)) << i;
  }
  StoreFixture fixture(other_, disk_.layer());
  fixture.wait_until_ready();
  for (std::uint64_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(fixture.read(i, i % 3), i % 3 == 1 ? StoreFault::kAbsent : StoreFault::kNone) << i;
  }
  for (std::uint64_t i = kPages; i < kPages + kLate; ++i) {
    EXPECT_EQ(fixture.read(i, 1), StoreFault::kAbsent) << i;
  }
}

// The next removal does not remove pages again: their room is freed.
TEST_P(OtherSlabs, GiveBackTheRoomOfWhatWasRemoved) {
  fill_other();
  settle();
  const std::uint64_t before = bytes_taken();
  StoreFixture fixture(ours_, disk_.layer());
  fixture.wait_until_ready();
  ASSERT_TRUE(fixture.store().remove(sample_owner(1)).ok());
  const std::uint64_t after = bytes_taken();
  EXPECT_GE(before - after, kPages / 3 * other_.page_bytes);
  ASSERT_TRUE(fixture.store().remove(sample_owner(7)).ok());
  EXPECT_EQ(bytes_taken(), after);
}

TEST_P(OtherSlabs, AreEmptyAfterARemovalOfEverything) {
  fill_other();
  settle();
  {
    StoreFixture fixture(ours_, disk_.layer());
    fixture.wait_until_ready();
    ASSERT_TRUE(fixture.store().remove_all().ok());
  }
  for (std::uint64_t i = 0; i < kPages + kLate; ++i) EXPECT_FALSE(is_on_disk(i)) << i;
  StoreFixture fixture(other_, disk_.layer());
  fixture.wait_until_ready();
  EXPECT_EQ(fixture.store().stats().pages, 0u);
}

TEST_P(OtherSlabs, ThatCannotBeWrittenMakeTheRemovalAnError) {
  fill_other();
  settle();
  StoreFixture fixture(ours_, disk_.layer());
  fixture.wait_until_ready();
  disk_.faults.is_read_only = true;
  EXPECT_FALSE(fixture.store().remove(sample_owner(1)).ok());
}

INSTANTIATE_TEST_SUITE_P(All, OtherSlabs,
                         testing::Values(Other{"Closed"}, Other{"WithAKey", true},
                                         Other{"Crashed", false, true},
                                         Other{"CrashedWithAKey", true, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace pagoda::store
