// A regular file mapped read-only for as long as the object lives.
//
// The size is taken once. A file that someone truncates while it is mapped ends the process on the
// next touch (mapping_faults.h), as with every mmap, and a file that is overwritten has other
// bytes; replacing it by rename is safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "gguf/file_state.h"
#include "gguf/mapping_faults.h"

namespace pagoda::gguf {

class MappedFile {
 public:
  // Fails for a file that is missing, unreadable, empty or not a regular file.
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // The descriptor stays open for reading the same file, whatever its path names by now.
  int descriptor() const { return descriptor_; }
  // The state before any byte was read.
  const FileState& state() const { return state_; }
  // Returns the memory to the system; pages are read from the file again when touched.
  void release_pages() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes, int descriptor,
             const FileState& state)
      : path_(std::move(path)),
        bytes_(bytes),
        descriptor_(descriptor),
        state_(state),
        noted_(bytes_, path_.c_str(), descriptor_) {}

  const std::string path_;
  std::span<const std::byte> bytes_;
  int descriptor_;
  FileState state_;
  NotedMapping noted_;
};

}  // namespace pagoda::gguf
