// Reads of gated files wait at a gate while it is shut.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "store/disk/wrapped_files.h"

namespace pagoda::store {

class Gate {
 public:
  void shut() { set(false); }
  void open() { set(true); }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }

 private:
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
};

class GatedFile final : public WrappedFile {
 public:
  GatedFile(std::unique_ptr<DiskFile> file, Gate& gate)
      : WrappedFile(std::move(file)), gate_(gate) {}
  IoResult read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    if (offset > 0) gate_.pass();  // open() reads the header
    return WrappedFile::read_at(offset, bytes);
  }

 private:
  Gate& gate_;
};

// The gate must outlive the files.
inline std::unique_ptr<FileLayer> gated_files(std::unique_ptr<FileLayer> layer, Gate& gate) {
  return std::make_unique<WrappedFiles>(
      std::move(layer), [&gate](const std::string&, std::unique_ptr<DiskFile> file) {
        return std::make_unique<GatedFile>(std::move(file), gate);
      });
}

}  // namespace pagoda::store
