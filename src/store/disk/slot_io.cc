#include "store/disk/slot_io.h"

#include <algorithm>
#include <cerrno>
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
  void read(std::size_t id, File& file, std::uint64_t offset, std::span<std::byte> bytes) override {
    done_.push_back({id, read_all(file, offset, bytes)});
  }
  void write(std::size_t id, File& file, std::uint64_t offset,
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
  explicit UringIo(std::size_t depth) : transfers_(depth) {
    is_open_ = io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0) == 0;
  }
  ~UringIo() override {
    if (is_open_) io_uring_queue_exit(&ring_);
  }
  UringIo(const UringIo&) = delete;
  UringIo& operator=(const UringIo&) = delete;

  bool is_open() const { return is_open_; }
  std::size_t depth() const override { return transfers_.size(); }

  void read(std::size_t id, File& file, std::uint64_t offset, std::span<std::byte> bytes) override {
    transfers_[id] = {&file, offset, bytes, {}, true, false};
    io_uring_sqe* const entry = next_entry(id);
    if (entry == nullptr) return;
    io_uring_prep_read(entry, file.descriptor(), bytes.data(), static_cast<unsigned>(bytes.size()),
                       offset);
    io_uring_sqe_set_data64(entry, id);
  }
  void write(std::size_t id, File& file, std::uint64_t offset,
             std::span<const std::byte> bytes) override {
    transfers_[id] = {&file, offset, {}, bytes, true, true};
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
      const int error = io_uring_submit_and_wait(&ring_, 1);
      if (error < 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY) {
        give_up(-error);
        continue;
      }
      if (error == -EAGAIN || error == -EBUSY) std::this_thread::yield();
      collect(done);
    }
  }

 private:
  struct Transfer {
    File* file = nullptr;
    std::uint64_t offset = 0;
    std::span<std::byte> into;
    std::span<const std::byte> from;
    bool is_under_way = false;
    bool is_write = false;
  };

  // Nothing: the ring is gone, and the transfer was done without it.
  io_uring_sqe* next_entry(std::size_t id) {
    if (is_open_) {
      io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
      ASSERT(entry != nullptr, "a ring has room for its depth");
      return entry;
    }
    plain_.push_back({id, rest_of(transfers_[id], 0)});
    transfers_[id].is_under_way = false;
    return nullptr;
  }

  // What the kernel left undone, the plain way.
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
      Transfer& transfer = transfers_[id];
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
      transfer.is_under_way = false;
      done.push_back({id, result});
    }
  }

  void give_up(int error) {
    for (std::size_t id = 0; id < transfers_.size(); ++id) {
      if (transfers_[id].is_under_way) plain_.push_back({id, {0, error}});
      transfers_[id].is_under_way = false;
    }
    io_uring_queue_exit(&ring_);
    is_open_ = false;
  }

  io_uring ring_ = {};
  bool is_open_ = false;
  std::vector<Transfer> transfers_;
  std::vector<IoDone> plain_;
};
#endif

}  // namespace

std::unique_ptr<SlotIo> make_plain_io() { return std::make_unique<PlainIo>(); }

std::unique_ptr<SlotIo> make_uring_io(std::size_t depth) {
#ifdef PAGODA_URING
  auto ring = std::make_unique<UringIo>(depth);
  if (ring->is_open()) return ring;
#else
  static_cast<void>(depth);
#endif
  return nullptr;
}

}  // namespace pagoda::store
