#include "gguf/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace pagoda::gguf {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

Error system_error(const std::string& path, std::string_view action, int code) {
  return {code == ENOENT || code == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
          fmt::format("{}: cannot {}: {}", path, action, std::generic_category().message(code))};
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return system_error(path, "open", errno);
  struct stat kind {};
  if (::fstat(file.number(), &kind) != 0) return system_error(path, "stat", errno);
  if (!S_ISREG(kind.st_mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is {}, expected a regular file", path,
                             S_ISDIR(kind.st_mode) ? "a directory" : "not a file")};
  }
  ASSIGN_OR_RETURN(const FileState state, file_state(file.number(), path));
  if (state.bytes == 0) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: is empty (0 bytes)", path)};
  }
  const auto size = static_cast<std::size_t>(state.bytes);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) return system_error(path, "map", errno);
  return std::unique_ptr<MappedFile>(new MappedFile(
      path, std::span(static_cast<const std::byte*>(memory), size), file.release(), state));
}

// A failure costs memory and nothing else, so that it is ignored.
void MappedFile::release_pages() const {
  static_cast<void>(::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED));
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(descriptor_);
}

}  // namespace pagoda::gguf
