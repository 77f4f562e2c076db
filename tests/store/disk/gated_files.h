// Reads and writes of GatedFiles wait at a gate while it is shut.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "store/disk/file_layer.h"

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

class GatedFile final : public DiskFile {
 public:
  GatedFile(std::unique_ptr<DiskFile> file, Gate& gate) : file_(std::move(file)), gate_(gate) {}
  IoResult read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    if (offset > 0) gate_.pass();  // open() reads the header
    return file_->read_at(offset, bytes);
  }
  IoResult write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return file_->write_at(offset, bytes);
  }
  int sync() override { return file_->sync(); }
  int resize(std::uint64_t bytes) override { return file_->resize(bytes); }
  std::uint64_t bytes() const override { return file_->bytes(); }

 private:
  std::unique_ptr<DiskFile> file_;
  Gate& gate_;
};

class GatedFiles final : public FileLayer {
 public:
  GatedFiles(std::unique_ptr<FileLayer> layer, Gate& gate)
      : layer_(std::move(layer)), gate_(gate) {}
  std::string path() const override { return layer_->path(); }
  int make_folder() override { return layer_->make_folder(); }
  int lock(bool shared) override { return layer_->lock(shared); }
  OpenedFile open(const std::string& name, OpenMode mode) override {
    OpenedFile opened = layer_->open(name, mode);
    if (opened.file) opened.file = std::make_unique<GatedFile>(std::move(opened.file), gate_);
    return opened;
  }
  std::vector<FileSize> list() override { return layer_->list(); }
  int remove(const std::string& name) override { return layer_->remove(name); }
  int sync_folder() override { return layer_->sync_folder(); }

 private:
  std::unique_ptr<FileLayer> layer_;
  Gate& gate_;
};

}  // namespace pagoda::store
