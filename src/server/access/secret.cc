#include "server/access/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file_bytes.h"
#include "base/random.h"
#include "server/access/digest.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kBytesMin = 16;
constexpr std::size_t kBytesMax = 4096;
constexpr std::size_t kSecretFileBytesMax = 2 * kBytesMax;  // allows for line ends

Error io_error(const std::string& path, const char* what) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(errno))};
}

Result<std::string> fresh_secret() {
  Digest bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return Error{ErrorCode::kIo, "the system gives no random bytes"};
  }
  return to_hex(bytes);
}

// Creates the whole file atomically; a file that another process created meanwhile stays.
Status make_file(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string draft = fmt::format("{}.{:016x}", path, fresh_seed());
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return io_error(path, "cannot be made");
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  const bool linked = written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int reason = errno;
  ::close(file);
  ::unlink(draft.c_str());
  errno = reason;
  return linked ? ok_status() : Status(io_error(path, "cannot be written"));
}

}  // namespace

Result<std::string> read_secret(const std::string& path) {
  ASSIGN_OR_RETURN(FileBytes file, read_file_bytes(path, kSecretFileBytesMax));
  if (file.is_open_to_others()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: others may read this secret (mode {:o}); chmod 600 it, or remove "
                             "it to have another made",
                             path, file.mode)};
  }
  std::string bytes = std::move(file.bytes);
  while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) bytes.pop_back();
  if (bytes.size() < kBytesMin || bytes.size() > kBytesMax) {
    return Error{ErrorCode::kOutOfRange, fmt::format("{}: a secret has {} to {} bytes, this has {}",
                                                     path, kBytesMin, kBytesMax, bytes.size())};
  }
  return bytes;
}

Result<std::string> read_or_make_secret(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    ASSIGN_OR_RETURN(const std::string secret, fresh_secret());
    RETURN_IF_ERROR(make_file(path, secret + "\n"));
  }
  return read_secret(path);
}

}  // namespace pagoda::server
