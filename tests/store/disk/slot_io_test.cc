// Some transfers end late: until they do, nobody else may touch their bytes.
#include "store/disk/slot_io.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "skip_reasons.h"

namespace pagoda::store {
namespace {

// PipeFile is a file whose bytes come when a test sends them.
class PipeFile final : public DiskFile {
 public:
  PipeFile() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~PipeFile() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  IoResult read_at(std::uint64_t /*offset*/, std::span<std::byte> bytes) override {
    const ssize_t count = ::read(ends_[0], bytes.data(), bytes.size());
    return {static_cast<std::size_t>(count), count < 0 ? errno : 0};
  }
  IoResult write_at(std::uint64_t /*offset*/, std::span<const std::byte> bytes) override {
    const ssize_t count = ::write(ends_[1], bytes.data(), bytes.size());
    return {static_cast<std::size_t>(count), count < 0 ? errno : 0};
  }
  int sync() override { return 0; }
  int resize(std::uint64_t /*bytes*/) override { return 0; }
  std::uint64_t bytes() const override { return 0; }
  int descriptor() const override { return ends_[0]; }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

// The ring breaks with reads under way, after their first call, their second, or while they wait
// for the kernel to take them at all.
TEST(SlotIo, ARingThatBreaksReportsNoTransferBeforeItHasEnded) {
  if (make_uring_io(1) == nullptr) GTEST_SKIP() << kNeedsUring << ": this kernel refuses it";
  constexpr std::size_t kReads = 4;
  constexpr std::size_t kBytes = 64;
  for (std::size_t break_after = 1; break_after <= 3; ++break_after) {
    std::array<PipeFile, kReads> files;
    std::array<std::array<std::byte, kBytes>, kReads> bytes = {};
    const std::unique_ptr<SlotIo> ring = make_uring_io(kReads, break_after);
    for (std::size_t i = 0; i < kReads; ++i) ring->read(i, files[i], 0, bytes[i]);
    std::atomic<std::size_t> sent = 0;
    std::thread sender([&] {
      for (std::size_t i = 0; i < kReads; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        std::array<std::byte, kBytes> text;
        text.fill(static_cast<std::byte>(i + 1));
        sent = i + 1;
        ASSERT_EQ(files[i].write_at(0, text).bytes, kBytes);
      }
    });
    std::vector<IoDone> done;
    while (done.size() < kReads) {
      const std::size_t before = done.size();
      ring->wait(done);
      for (std::size_t i = before; i < done.size(); ++i) {
        EXPECT_LT(done[i].id, sent) << "it was reported before its bytes had come";
        EXPECT_EQ(done[i].result.error, 0);
        EXPECT_EQ(done[i].result.bytes, kBytes);
        EXPECT_EQ(bytes[done[i].id].back(), static_cast<std::byte>(done[i].id + 1));
      }
    }
    sender.join();
    // Transfers go on without the ring.
    std::array<std::byte, kBytes> text = {};
    ASSERT_EQ(files[0].write_at(0, text).bytes, kBytes);
    ring->read(0, files[0], 0, bytes[0]);
    done.clear();
    ring->wait(done);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].result.bytes, kBytes);
  }
}

}  // namespace
}  // namespace pagoda::store
