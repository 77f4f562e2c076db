// FileLayer is the operating system as the store sees it: files of one folder, by name. The store's
// logic is written over this layer so that tests can lose, tear, reorder and refuse what a disk may
// lose, tear, reorder and refuse.
//
// Errors are numbers of <cerrno>; 0 is success. A write is durable once sync() of its file returned
// 0 after it; until then any part of it may be lost, in sectors of 512 bytes, in any order. A
// sector is written whole or not at all, by a write that fails as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pagoda::store {

struct IoResult {
  std::size_t bytes = 0;
  int error = 0;
};

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // behind the last byte
};

// Thread rule: any number of threads at once.
class DiskFile {
 public:
  virtual ~DiskFile() = default;
  // Both may transfer less than was asked; a read of 0 bytes is the file's end.
  virtual IoResult read_at(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual IoResult write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual int sync() = 0;
  virtual int resize(std::uint64_t bytes) = 0;
  virtual std::uint64_t bytes() const = 0;
  // Returns the next range at or after `offset` whose bytes may differ from zero; the bytes before
  // it were never written, or were made a hole. An empty range at the end of all offsets: there is
  // none.
  virtual ByteRange next_data(std::uint64_t offset) { return {offset, UINT64_MAX}; }
  // Frees the room of a range whose bytes are zero and synced, where the file system can.
  virtual void make_hole(std::uint64_t /*offset*/, std::size_t /*bytes*/) {}
  // Returns the file descriptor for io_uring; -1 where there is none.
  virtual int descriptor() const { return -1; }
  // True: offsets, sizes and buffers must be multiples of kIoAlignment.
  virtual bool is_direct() const { return false; }
};

enum class OpenMode {
  kReadOnly,
  kReadWrite,        // created when missing
  kReadWriteDirect,  // bypasses the page cache where the file system can
};

struct OpenedFile {
  std::unique_ptr<DiskFile> file;
  int error = 0;
};

struct FileSize {
  std::string name;
  std::uint64_t bytes_on_disk = 0;  // disk blocks that the file really takes
  std::int64_t changed_s = 0;
};

class FileLayer {
 public:
  virtual ~FileLayer() = default;
  virtual std::string path() const = 0;
  virtual int make_folder() = 0;
  // EWOULDBLOCK: another process has the lock. The layer holds the lock until it is destroyed.
  virtual int lock(bool shared) = 0;
  virtual OpenedFile open(const std::string& name, OpenMode mode) = 0;
  virtual std::vector<FileSize> list() = 0;
  virtual int remove(const std::string& name) = 0;
  // Makes the names of created and removed files durable.
  virtual int sync_folder() = 0;
};

// Transfers all bytes, or fails; a read past the end leaves zeros and says how much there was.
IoResult read_all(DiskFile& file, std::uint64_t offset, std::span<std::byte> bytes);
IoResult write_all(DiskFile& file, std::uint64_t offset, std::span<const std::byte> bytes);

// Formats an error: "No space left on device".
std::string error_text(int error);

}  // namespace pagoda::store
