// Files of another layer, each behind a wrapper of the test's: it overrides the calls that it looks
// at, and all others go through.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/disk/file_layer.h"

namespace pagoda::store {

class WrappedFile : public DiskFile {
 public:
  explicit WrappedFile(std::unique_ptr<DiskFile> file) : file_(std::move(file)) {}
  IoResult read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    return file_->read_at(offset, bytes);
  }
  IoResult write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return file_->write_at(offset, bytes);
  }
  int sync() override { return file_->sync(); }
  int resize(std::uint64_t bytes) override { return file_->resize(bytes); }
  std::uint64_t bytes() const override { return file_->bytes(); }
  ByteRange next_data(std::uint64_t offset) override { return file_->next_data(offset); }
  void make_hole(std::uint64_t offset, std::size_t bytes) override {
    file_->make_hole(offset, bytes);
  }

 private:
  std::unique_ptr<DiskFile> file_;
};

class WrappedFiles final : public FileLayer {
 public:
  // Wraps the file of a name.
  using Wrap = std::function<std::unique_ptr<DiskFile>(const std::string& name,
                                                       std::unique_ptr<DiskFile> file)>;

  WrappedFiles(std::unique_ptr<FileLayer> layer, Wrap wrap)
      : layer_(std::move(layer)), wrap_(std::move(wrap)) {}
  std::string path() const override { return layer_->path(); }
  int make_folder() override { return layer_->make_folder(); }
  int lock(bool shared) override { return layer_->lock(shared); }
  OpenedFile open(const std::string& name, OpenMode mode) override {
    OpenedFile opened = layer_->open(name, mode);
    if (opened.file) opened.file = wrap_(name, std::move(opened.file));
    return opened;
  }
  std::vector<FileSize> list() override { return layer_->list(); }
  int remove(const std::string& name) override { return layer_->remove(name); }
  int sync_folder() override { return layer_->sync_folder(); }

 private:
  std::unique_ptr<FileLayer> layer_;
  Wrap wrap_;
};

}  // namespace pagoda::store
