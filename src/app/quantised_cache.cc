#include "app/quantised_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "base/file_bytes.h"
#include "gguf/fingerprint.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytesMax = std::uint64_t{32} << 30;
constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kRecordBytesMax = 512;
constexpr const char* kModelEnd = ".gguf";
constexpr const char* kRecordEnd = ".sha256";

Error io_error(const std::string& path, std::string_view action, int code) {
  return {ErrorCode::kIo,
          fmt::format("{}: cannot {}: {}", path, action, std::generic_category().message(code))};
}

// An open file with a lock that goes with it.
class LockedFile {
 public:
  LockedFile(const std::string& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~LockedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // False, with errno, when it is not locked.
  bool lock(int operation) const {
    int outcome = 0;
    do {
      outcome = ::flock(descriptor_, operation);
    } while (outcome != 0 && errno == EINTR);
    return outcome == 0;
  }

 private:
  int descriptor_;
};

Error cannot_keep(const std::string& folder, const std::string& reason) {
  return {ErrorCode::kIo,
          fmt::format("{}: cannot write quantised models there: {}; set XDG_CACHE_HOME to a folder "
                      "that can be written",
                      folder, reason)};
}

Status lock_folder(const LockedFile& file, const std::string& path) {
  if (file.lock(LOCK_EX | LOCK_NB)) return ok_status();
  if (errno != EWOULDBLOCK) return io_error(path, "lock", errno);
  terminal::print_note("waiting for another process that quantises a model");
  if (file.lock(LOCK_EX)) return ok_status();
  return io_error(path, "lock", errno);
}

// The digest of a record, or nothing.
std::optional<std::string> read_digest(const std::string& path) {
  const Result<FileBytes> record = read_file_bytes(path, kRecordBytesMax);
  if (!record.ok() || record.value().bytes.size() < kDigestDigits) return std::nullopt;
  return record.value().bytes.substr(0, kDigestDigits);
}

Status write_record(const std::string& path, const std::string& digest, const std::string& name) {
  ASSIGN_OR_RETURN(gguf::FileWriter writer, gguf::FileWriter::create(path));
  const std::string text = fmt::format("{}  {}\n", digest, name);
  RETURN_IF_ERROR(writer.append(std::as_bytes(std::span(text))));
  ASSIGN_OR_RETURN(const std::string ignored, writer.commit());
  static_cast<void>(ignored);
  return ok_status();
}

// Whether the path names the open file; it was removed or replaced otherwise.
bool names(const std::string& path, int descriptor) {
  struct stat named = {};
  struct stat opened = {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

struct KeptModel {
  std::string path;
  std::string record;
  std::uint64_t bytes;
  timespec used;
};

// Least recently used first.
std::vector<KeptModel> list_kept(const std::string& folder) {
  std::vector<KeptModel> kept;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != kModelEnd) continue;
    KeptModel model = {.path = entry.path().string(),
                       .record = fs::path(entry.path()).replace_extension(kRecordEnd).string(),
                       .bytes = 0,
                       .used = {}};
    struct stat file = {};
    struct stat record = {};
    if (::stat(model.path.c_str(), &file) != 0 || ::stat(model.record.c_str(), &record) != 0) {
      continue;
    }
    model.bytes = static_cast<std::uint64_t>(file.st_size);
    model.used = record.st_mtim;
    kept.push_back(std::move(model));
  }
  std::sort(kept.begin(), kept.end(), [](const KeptModel& a, const KeptModel& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.path) <
           std::tie(b.used.tv_sec, b.used.tv_nsec, b.path);
  });
  return kept;
}

std::uint64_t bytes_of(const std::vector<KeptModel>& models) {
  std::uint64_t bytes = 0;
  for (const KeptModel& model : models) bytes += model.bytes;
  return bytes;
}

std::uint64_t available_bytes(const std::string& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  return error ? std::numeric_limits<std::uint64_t>::max() : space.available;
}

// Whether no process uses the model at this path.
bool is_unused(const LockedFile& file) { return !file.is_open() || file.lock(LOCK_EX | LOCK_NB); }

// Network file systems lock for writing only what is open for it.
constexpr int kOpenToLock = O_RDWR;

// False: a process uses the model.
bool remove_unused(const KeptModel& model) {
  const LockedFile file(model.path, kOpenToLock);
  if (!is_unused(file)) return false;
  std::error_code ignored;
  fs::remove(model.record, ignored);
  fs::remove(model.path, ignored);
  return true;
}

// Removes the least recently used of those that nobody uses until `bytes` are free. False: they are
// not that long together, and all of them stay.
bool free_bytes(const std::vector<KeptModel>& models, std::uint64_t bytes) {
  std::uint64_t unused = 0;
  for (const KeptModel& model : models) {
    unused += is_unused(LockedFile(model.path, kOpenToLock)) ? model.bytes : 0;
  }
  if (unused < bytes) return false;
  std::uint64_t freed = 0;
  for (const KeptModel& model : models) {
    if (freed >= bytes) break;
    if (remove_unused(model)) freed += model.bytes;
  }
  return freed >= bytes;
}

std::uint64_t excess(std::uint64_t bytes, std::uint64_t limit) {
  return bytes > limit ? bytes - limit : 0;
}

}  // namespace

QuantisedCache::QuantisedCache(std::string folder, std::optional<std::uint64_t> bytes_max)
    : folder_(std::move(folder)), bytes_max_(bytes_max) {}

std::uint64_t QuantisedCache::default_bytes(std::uint64_t available, std::uint64_t kept) {
  const std::uint64_t room = available / 2 + kept / 2;
  return std::min(kBytesMax, room);
}

std::string QuantisedCache::model_path(const std::string& key) const {
  return fmt::format("{}/{}{}", folder_, key, kModelEnd);
}

std::string QuantisedCache::record_path(const std::string& key) const {
  return fmt::format("{}/{}{}", folder_, key, kRecordEnd);
}

std::string QuantisedCache::lock_path() const { return folder_ + "/lock"; }

Result<gguf::File> QuantisedCache::find(const std::string& key) const {
  const std::string path = model_path(key);
  const Error missing = {ErrorCode::kNotFound, path};
  const std::optional<std::string> digest = read_digest(record_path(key));
  if (!digest) return missing;
  ASSIGN_OR_RETURN(gguf::File file, gguf::File::open(path));
  const std::vector<gguf::OpenedPart> parts = file.opened_parts();
  // Who removes it holds the other kind of lock for a moment; who reads without a lock, as on a
  // file system that has none, is as safe as anybody whose file is removed: it stays mapped.
  const bool is_locked = ::flock(parts.front().descriptor, LOCK_SH | LOCK_NB) == 0;
  if (!is_locked && errno == EWOULDBLOCK) return missing;
  if (!names(path, parts.front().descriptor)) return missing;
  const std::atomic<bool> stop = false;
  ASSIGN_OR_RETURN(const bool is_whole, gguf::confirm_fingerprint(parts, *digest, {}, stop));
  if (!is_whole) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: is damaged: its SHA-256 is another", path)};
  }
  // It is used now. A failure, as in a folder that is read-only, costs the model its turn.
  static_cast<void>(::utimensat(AT_FDCWD, record_path(key).c_str(), nullptr, 0));
  return file;
}

void QuantisedCache::sweep() const {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const fs::path& path = entry.path();
    const auto has = [&](const char* end) {
      return fs::exists(fs::path(path).replace_extension(end), ignored);
    };
    const fs::path end = path.extension();
    const bool is_model = end == kModelEnd && !has(kRecordEnd);
    if (end == gguf::FileWriter::kTemporaryEnd || (end == kRecordEnd && !has(kModelEnd)) ||
        (is_model && is_unused(LockedFile(path, kOpenToLock)))) {
      left.push_back(path);
    }
  }
  for (const fs::path& path : left) fs::remove(path, ignored);
}

bool QuantisedCache::make_room(std::uint64_t bytes) const {
  const std::vector<KeptModel> models = list_kept(folder_);
  const std::uint64_t kept = bytes_of(models);
  const std::uint64_t available = available_bytes(folder_);
  const std::uint64_t bytes_max = bytes_max_.value_or(default_bytes(available, kept));
  const std::uint64_t beyond_disk = excess(bytes, available);
  if (bytes <= bytes_max &&
      free_bytes(models, std::max(excess(kept + bytes, bytes_max), beyond_disk))) {
    return true;
  }
  free_bytes(models, beyond_disk);
  return false;
}

void QuantisedCache::trim() const {
  if (!bytes_max_) return;
  const LockedFile lock(lock_path(), O_RDWR);
  if (!lock.is_open() || !lock.lock(LOCK_EX | LOCK_NB)) return;
  const std::vector<KeptModel> models = list_kept(folder_);
  std::uint64_t kept = bytes_of(models);
  for (const KeptModel& model : models) {
    if (kept > *bytes_max_ && remove_unused(model)) kept -= model.bytes;
  }
}

Status QuantisedCache::check_space(std::uint64_t bytes) const {
  const std::uint64_t available = available_bytes(folder_);
  if (bytes <= available) return ok_status();
  return Error{ErrorCode::kIo,
               fmt::format("{}: the quantised model takes {}, and {} are free there; free some, or "
                           "set XDG_CACHE_HOME to a folder on another disk",
                           folder_, format_byte_size(static_cast<double>(bytes)),
                           format_byte_size(static_cast<double>(available)))};
}

Result<gguf::File> QuantisedCache::open_unnamed(const std::string& key) const {
  const std::string path = model_path(key);
  const LockedFile file(path, O_RDONLY);
  if (!file.is_open()) return io_error(path, "open", errno);
  // First removed, then opened: removing changes the state that a server watches.
  if (::unlink(path.c_str()) != 0) return io_error(path, "remove", errno);
  return gguf::File::open(fmt::format("/proc/self/fd/{}", file.descriptor()));
}

Result<gguf::File> QuantisedCache::open(const std::string& key, const Source& source) {
  Result<gguf::File> kept = find(key);
  if (kept.ok()) {
    trim();
    return kept;
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return cannot_keep(folder_, error.message());
  const LockedFile lock(lock_path(), O_RDWR | O_CREAT);
  if (!lock.is_open()) return cannot_keep(folder_, std::generic_category().message(errno));
  RETURN_IF_ERROR(lock_folder(lock, lock_path()));
  kept = find(key);  // another process may have made it meanwhile
  if (kept.ok()) return kept;
  if (kept.error().code != ErrorCode::kNotFound) {
    terminal::print_warning(fmt::format("{}; the model is quantised again", kept.error().message));
  }
  RETURN_IF_ERROR(source.check());
  return make(key, source);
}

Result<gguf::File> QuantisedCache::make(const std::string& key, const Source& source) const {
  std::error_code ignored;
  fs::remove(record_path(key), ignored);
  sweep();
  const bool is_kept = make_room(source.bytes);
  RETURN_IF_ERROR(check_space(source.bytes));
  const std::string path = model_path(key);
  ASSIGN_OR_RETURN(gguf::FileWriter writer, gguf::FileWriter::create(path));
  RETURN_IF_ERROR(source.write(writer));
  ASSIGN_OR_RETURN(const std::string digest, writer.commit());
  if (!is_kept) {
    if (bytes_max_ != 0u) {
      terminal::print_warning(
          fmt::format("the quantised model is not kept for the next start: it takes {}, more than "
                      "`quantized_cache_size` leaves",
                      format_byte_size(static_cast<double>(source.bytes))));
    }
    return open_unnamed(key);
  }
  RETURN_IF_ERROR(write_record(record_path(key), digest, key + kModelEnd));
  ASSIGN_OR_RETURN(gguf::File file, gguf::File::open(path));
  static_cast<void>(::flock(file.opened_parts().front().descriptor, LOCK_SH | LOCK_NB));
  return file;
}

}  // namespace pagoda::app
