// Some disks take no writes, and the store says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <functional>

#include "store/disk/faulty_disk.h"
#include "store/disk/store_fixture.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

TEST(RefusedWrites, AreDistinctFromWritesThatComeTooFast) {
  struct Case {
    const char* name;
    std::function<void(FaultyDisk&)> harm;
    const char* cause;
  };
  const Case kCases[] = {
      {"read-only", [](FaultyDisk& disk) { disk.faults.is_read_only = true; }, "Read-only"},
      {"failing", [](FaultyDisk& disk) { disk.faults.write_error = 1; }, "Input/output error"},
      {"full and empty", [](FaultyDisk& disk) { disk.faults.is_full = true; }, "No space left"},
  };
  for (const Case& each : kCases) {
    FaultyDisk disk(1);
    DiskOptions options = fixture_options("/simulated");
    options.failures_max = 3;
    options.retry_after_ns = 200'000'000;
    StoreFixture fixture(options, disk.layer());
    fixture.wait_until_ready();
    EXPECT_TRUE(fixture.store().takes_writes()) << each.name;
    each.harm(disk);
    for (std::uint64_t i = 0; i < 3; ++i)
      EXPECT_NE(fixture.write(i), StoreFault::kNone) << each.name;
    EXPECT_FALSE(fixture.store().takes_writes()) << each.name;
    EXPECT_EQ(fixture.write(9), StoreFault::kOff) << each.name;
    EXPECT_THAT(fixture.store().stats().condition, testing::HasSubstr(each.cause)) << each.name;
    EXPECT_TRUE(fixture.store().flush(1'000'000'000).ok()) << each.name << ": nothing waits";
    disk.faults = {};
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    EXPECT_TRUE(fixture.store().takes_writes()) << each.name << ": it is tried again";
    EXPECT_EQ(fixture.write(10), StoreFault::kNone) << each.name;
    EXPECT_EQ(fixture.store().stats().condition, "") << each.name;
  }
}

TEST(RefusedWrites, AreKnownFromTheStartOnAReadOnlyFileSystem) {
  FaultyDisk disk(2);
  const DiskOptions options = fixture_options("/simulated");
  {
    StoreFixture fixture(options, disk.layer());
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
  }
  disk.faults.is_read_only = true;
  StoreFixture fixture(options, disk.layer());
  EXPECT_FALSE(fixture.store().takes_writes());
  fixture.wait_until_ready();
  EXPECT_FALSE(fixture.store().takes_writes());
  EXPECT_EQ(fixture.read(1), StoreFault::kNone);
}

// The system itself refuses: no file may be written beyond its first byte.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    before_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, before_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  sighandler_t before_handler_ = nullptr;
};

TEST(RefusedWrites, OfRealFilesAreFaultsWithTheirCause) {
  for (const bool use_uring : {true, false}) {
    const TemporaryFolder folder;
    DiskOptions options = fixture_options(folder.path());
    options.failures_max = 2;
    options.use_uring = use_uring;
    StoreFixture fixture(options);
    fixture.wait_until_ready();
    ASSERT_EQ(fixture.write(1), StoreFault::kNone);
    ASSERT_TRUE(fixture.store().flush(10'000'000'000).ok());
    {
      const FileSizeLimit limit;
      EXPECT_EQ(fixture.write(2), StoreFault::kIo);
      EXPECT_EQ(fixture.write(3), StoreFault::kIo);
      EXPECT_FALSE(fixture.store().takes_writes());
      EXPECT_THAT(fixture.store().stats().condition, testing::HasSubstr("File too large"));
      EXPECT_EQ(fixture.read(1), StoreFault::kNone);
    }
  }
}

}  // namespace
}  // namespace pagoda::store
