#include "base/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace pagoda {
namespace {

constexpr int kPipePatienceMs = 5'000;
constexpr std::size_t kReadBytes = 16 << 10;

class Descriptor {
 public:
  // O_NONBLOCK: open() itself would wait for the writer of a pipe.
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Reads like read(), but waits for bytes that are still to be written.
ssize_t read_some(int file, char* to, std::size_t room) {
  for (;;) {
    const ssize_t count = ::read(file, to, room);
    if (count >= 0 || (errno != EAGAIN && errno != EINTR)) return count;
    pollfd wait = {.fd = file, .events = POLLIN, .revents = 0};
    if (errno == EAGAIN && ::poll(&wait, 1, kPipePatienceMs) == 0) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
}

Error cannot_read(const std::string& path) {
  return {ErrorCode::kIo, fmt::format("{}: cannot be read: {}", path, std::strerror(errno))};
}

}  // namespace

Result<FileBytes> read_file_bytes(const std::string& path, std::size_t bytes_max) {
  const Descriptor file(path);
  struct stat status = {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) return cannot_read(path);
  FileBytes read = {.bytes = {}, .mode = status.st_mode & 0777u};
  std::array<char, kReadBytes> piece;
  for (;;) {
    const ssize_t count = read_some(file.number(), piece.data(), piece.size());
    if (count < 0) return cannot_read(path);
    if (count == 0) return read;
    read.bytes.append(piece.data(), static_cast<std::size_t>(count));
    if (read.bytes.size() > bytes_max) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("{}: has more than {} bytes", path, bytes_max)};
    }
  }
}

}  // namespace pagoda
