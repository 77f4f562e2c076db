// Tests that a removal costs what it removes, and that nobody waits for it but its caller.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "store/disk/faulty_disk.h"
#include "store/disk/gated_files.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

struct Observed {
  std::atomic<int> slab_writes = 0;
  std::atomic<int> index_writes = 0;
  std::atomic<int> holes = 0;
  Gate hole_gate;  // make_hole() waits while it is shut
};

class ObservedFile final : public WrappedFile {
 public:
  ObservedFile(std::unique_ptr<DiskFile> file, bool is_slab, Observed& seen)
      : WrappedFile(std::move(file)), is_slab_(is_slab), seen_(seen) {}
  IoResult write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    ++(is_slab_ ? seen_.slab_writes : seen_.index_writes);
    return WrappedFile::write_at(offset, bytes);
  }
  void make_hole(std::uint64_t offset, std::size_t bytes) override {
    ++seen_.holes;
    seen_.hole_gate.pass();
    WrappedFile::make_hole(offset, bytes);
  }

 private:
  const bool is_slab_;
  Observed& seen_;
};

class Removals : public testing::Test {
 protected:
  static constexpr std::uint64_t kSlots = 4096;

  // Pages 0 to 9, page i of owner i % 2.
  void fill() {
    StoreFixture fixture(options_, disk_.layer());
    fixture.wait_until_ready();
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(fixture.write(i, i % 2), StoreFault::kNone);
    ASSERT_TRUE(fixture.store().flush(10'000'000'000).ok());
  }
  std::unique_ptr<FileLayer> observed() {
    return std::make_unique<WrappedFiles>(disk_.layer(), [this](const std::string& name,
                                                                std::unique_ptr<DiskFile> file) {
      return std::make_unique<ObservedFile>(std::move(file), name.ends_with(kSlabSuffix), seen_);
    });
  }

  DiskOptions options_ = fixture_options("/simulated", kSlots);
  FaultyDisk disk_{11};
  Observed seen_;
};

TEST_F(Removals, CostWhatTheyRemoveWhateverTheSizeOfTheSlab) {
  fill();
  StoreFixture fixture(options_, observed());
  fixture.wait_until_ready();
  seen_.slab_writes = seen_.index_writes = 0;
  const Result<kv::Removal> removed = fixture.store().remove(sample_owner(1));
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(removed.value().pages, 5u);
  EXPECT_TRUE(removed.value().overwritten);
  EXPECT_EQ(seen_.slab_writes, 5);
  EXPECT_LE(seen_.holes, 5);
  EXPECT_LE(seen_.index_writes, 10);
  seen_.slab_writes = seen_.index_writes = seen_.holes = 0;
  ASSERT_TRUE(fixture.store().remove(sample_owner(7)).ok());
  EXPECT_EQ(seen_.slab_writes, 0);
  EXPECT_EQ(seen_.holes, 0);
  EXPECT_EQ(seen_.index_writes, 0);
}

TEST_F(Removals, MakeOneHoleOfNeighbours) {
  fill();
  StoreFixture fixture(options_, observed());
  fixture.wait_until_ready();
  ASSERT_TRUE(fixture.store().remove_all().ok());
  EXPECT_EQ(seen_.holes, 1) << "ten pages in ten slots, one beside the other";
}

// A write that found no room left its slot without a byte: there is nothing to overwrite.
TEST_F(Removals, NeedNoRoomOnAFullDisk) {
  fill();
  StoreFixture fixture(options_, observed());
  fixture.wait_until_ready();
  disk_.faults.is_full = true;
  EXPECT_NE(fixture.write(20, 0), StoreFault::kNone);
  const Result<kv::Removal> removed = fixture.store().remove(sample_owner(1));
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_TRUE(removed.value().overwritten);
}

TEST_F(Removals, KeepNobodyWaiting) {
  fill();
  StoreFixture fixture(options_, observed());
  fixture.wait_until_ready();
  seen_.hole_gate.shut();
  auto removal =
      std::async(std::launch::async, [&] { return fixture.store().remove(sample_owner(1)).ok(); });
  while (seen_.holes == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  auto others = std::async(std::launch::async, [&] {
    bool is_good = fixture.finds(0) && !fixture.finds(1);
    fixture.store().set_idle(true);
    fixture.store().set_idle(false);
    is_good = is_good && fixture.store().takes_writes() && fixture.store().stats().pages == 5;
    is_good = is_good && fixture.write(20, 0) == StoreFault::kNone;
    return is_good && fixture.read(20, 0) == StoreFault::kNone;
  });
  EXPECT_EQ(others.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  seen_.hole_gate.open();
  EXPECT_TRUE(others.get());
  EXPECT_TRUE(removal.get());
  EXPECT_EQ(fixture.read(20, 0), StoreFault::kNone);
}

}  // namespace
}  // namespace pagoda::store
