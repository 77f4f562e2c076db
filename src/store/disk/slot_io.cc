#include "store/disk/slot_io.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "base/assert.h"

#ifdef PAGODA_URING
#include <liburing.h>
#endif

namespace pagoda::store {
namespace {

class PlainIo final : public SlotIo {
 public:
  std::size_t depth() const override { return 1; }
  void read(std::size_t id, DiskFile& file, std::uint64_t offset,
            std::span<std::byte> bytes) override {
    done_.push_back({id, read_all(file, offset, bytes)});
  }
  void write(std::size_t id, DiskFile& file, std::uint64_t offset,
             std::span<const std::byte> bytes) override {
    done_.push_back({id, write_all(file, offset, bytes)});
  }
  void wait(std::vector<IoDone>& done) override {
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

 private:
  std::vector<IoDone> done_;
};

#ifdef PAGODA_URING
class UringIo final : public SlotIo {
 public:
  UringIo(std::size_t depth, std::size_t break_after)
      : transfers_(depth), break_after_(break_after) {
    is_open_ = io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0) == 0;
  }
  ~UringIo() override {
    if (is_open_) io_uring_queue_exit(&ring_);
  }
  UringIo(const UringIo&) = delete;
  UringIo& operator=(const UringIo&) = delete;

  bool is_open() const { return is_open_; }
  std::size_t depth() const override { return transfers_.size(); }

  void read(std::size_t id, DiskFile& file, std::uint64_t offset,
            std::span<std::byte> bytes) override {
    transfers_[id] = {&file, offset, bytes, {}, false};
    io_uring_sqe* const entry = next_entry(id);
    if (entry == nullptr) return;
    io_uring_prep_read(entry, file.descriptor(), bytes.data(), static_cast<unsigned>(bytes.size()),
                       offset);
    io_uring_sqe_set_data64(entry, id);
  }
  void write(std::size_t id, DiskFile& file, std::uint64_t offset,
             std::span<const std::byte> bytes) override {
    transfers_[id] = {&file, offset, {}, bytes, true};
    io_uring_sqe* const entry = next_entry(id);
    if (entry == nullptr) return;
    io_uring_prep_write(entry, file.descriptor(), bytes.data(), static_cast<unsigned>(bytes.size()),
                        offset);
    io_uring_sqe_set_data64(entry, id);
  }

  void wait(std::vector<IoDone>& done) override {
    const std::size_t before = done.size();
    while (done.size() == before) {
      done.insert(done.end(), plain_.begin(), plain_.end());
      plain_.clear();
      if (done.size() > before) return;
      const int error = submit_and_wait();
      note_taken();
      collect(done);
      if (error == -EAGAIN || error == -EBUSY) {
        std::this_thread::yield();
      } else if (error < 0 && error != -EINTR) {
        give_up(done);
      }
    }
  }

 private:
  struct Transfer {
    DiskFile* file = nullptr;
    std::uint64_t offset = 0;
    std::span<std::byte> into;
    std::span<const std::byte> from;
    bool is_write = false;
  };

  int submit_and_wait() {
    if (break_after_ > 0 && --break_after_ == 0) {
      io_uring_submit(&ring_);
      return -EBADF;
    }
    return io_uring_submit_and_wait(&ring_, 1);
  }

  // Nothing: the ring is gone, and the transfer was done without it.
  io_uring_sqe* next_entry(std::size_t id) {
    if (is_open_) {
      io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
      ASSERT(entry != nullptr, "a ring has room for its depth");
      offered_.push_back(id);
      return entry;
    }
    plain_.push_back({id, rest_of(transfers_[id], 0)});
    return nullptr;
  }

  // The kernel takes entries in order.
  void note_taken() {
    while (offered_.size() > io_uring_sq_ready(&ring_)) {
      offered_.pop_front();
      ++taken_;
    }
  }

  // Completes a transfer that the kernel left undone, by plain calls.
  static IoResult rest_of(const Transfer& transfer, std::size_t bytes) {
    IoResult rest =
        transfer.is_write
            ? write_all(*transfer.file, transfer.offset + bytes, transfer.from.subspan(bytes))
            : read_all(*transfer.file, transfer.offset + bytes, transfer.into.subspan(bytes));
    rest.bytes += bytes;
    return rest;
  }

  void collect(std::vector<IoDone>& done) {
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&ring_, &entry) == 0) {
      const auto id = static_cast<std::size_t>(io_uring_cqe_get_data64(entry));
      const int count = entry->res;
      io_uring_cqe_seen(&ring_, entry);
      const Transfer& transfer = transfers_[id];
      const std::size_t wanted = transfer.is_write ? transfer.from.size() : transfer.into.size();
      IoResult result;
      if (count == -EINTR || count == -EAGAIN) {
        result = rest_of(transfer, 0);
      } else if (count < 0) {
        result.error = -count;
      } else if (static_cast<std::size_t>(count) < wanted) {
        result = rest_of(transfer, static_cast<std::size_t>(count));
      } else {
        result.bytes = wanted;
      }
      --taken_;
      done.push_back({id, result});
    }
  }

  // The kernel takes no more. Transfers it has taken end by themselves, and until then the kernel
  // may write into their bytes, also after the ring is closed; the others are done by plain calls.
  void give_up(std::vector<IoDone>& done) {
    for (collect(done); taken_ > 0; collect(done)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    io_uring_queue_exit(&ring_);
    is_open_ = false;
    for (const std::size_t id : std::exchange(offered_, {})) {
      plain_.push_back({id, rest_of(transfers_[id], 0)});
    }
  }

  io_uring ring_ = {};
  bool is_open_ = false;
  std::vector<Transfer> transfers_;  // [id]
  std::deque<std::size_t> offered_;  // transfers that the kernel has not taken from the ring
  std::size_t taken_ = 0;            // transfers that it has taken and not ended
  std::vector<IoDone> plain_;
  std::size_t break_after_;
};
#endif

}  // namespace

std::unique_ptr<SlotIo> make_plain_io() { return std::make_unique<PlainIo>(); }

std::unique_ptr<SlotIo> make_uring_io([[maybe_unused]] std::size_t depth,
                                      [[maybe_unused]] std::size_t break_after) {
#ifdef PAGODA_URING
  auto ring = std::make_unique<UringIo>(depth, break_after);
  if (ring->is_open()) return ring;
#endif
  return nullptr;
}

}  // namespace pagoda::store
