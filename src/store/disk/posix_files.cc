#include "store/disk/posix_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "store/disk/format.h"

namespace pagoda::store {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr std::uint64_t kBlockBytes = 512;  // the unit of st_blocks

class PosixFile final : public DiskFile {
 public:
  PosixFile(int descriptor, bool is_direct) : descriptor_(descriptor), is_direct_(is_direct) {}
  ~PosixFile() override { ::close(descriptor_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  IoResult read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    const ssize_t count =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return count < 0 ? IoResult{0, errno} : IoResult{static_cast<std::size_t>(count), 0};
  }
  IoResult write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return count < 0 ? IoResult{0, errno} : IoResult{static_cast<std::size_t>(count), 0};
  }
  int sync() override { return ::fdatasync(descriptor_) == 0 ? 0 : errno; }
  int resize(std::uint64_t bytes) override {
    return ::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  }
  std::uint64_t bytes() const override {
    struct stat now = {};
    return ::fstat(descriptor_, &now) == 0 ? static_cast<std::uint64_t>(now.st_size) : 0;
  }
  ByteRange next_data(std::uint64_t offset) override {
    const off_t data = ::lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {UINT64_MAX, UINT64_MAX};
    if (data < 0) return {offset, UINT64_MAX};  // the file system does not say
    const off_t hole = ::lseek(descriptor_, data, SEEK_HOLE);
    return {static_cast<std::uint64_t>(data),
            hole < 0 ? UINT64_MAX : static_cast<std::uint64_t>(hole)};
  }
  void make_hole(std::uint64_t offset, std::size_t bytes) override {
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(bytes));
  }
  int descriptor() const override { return descriptor_; }
  bool is_direct() const override { return is_direct_; }

 private:
  int descriptor_;
  bool is_direct_;
};

}  // namespace

PosixFiles::PosixFiles(std::string path) : path_(std::move(path)) {}

PosixFiles::~PosixFiles() {
  if (lock_ >= 0) ::close(lock_);
}

int PosixFiles::make_folder() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return error.value();
  if (::mkdir(path_.c_str(), kFolderMode) == 0) return 0;
  if (errno != EEXIST) return errno;
  return std::filesystem::is_directory(path_, error) ? 0 : ENOTDIR;
}

int PosixFiles::lock(bool shared) {
  const std::string name = path_ + "/" + std::string(kLockName);
  const int flags = O_CLOEXEC | (shared ? O_RDONLY : O_RDWR | O_CREAT);
  const int file = ::open(name.c_str(), flags, kFileMode);
  if (file < 0) return shared && errno == ENOENT ? 0 : errno;  // a reader creates nothing
  if (::flock(file, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    const int error = errno;
    ::close(file);
    return error;
  }
  lock_ = file;
  return 0;
}

OpenedFile PosixFiles::open(const std::string& name, OpenMode mode) {
  const std::string path = path_ + "/" + name;
  const int flags = O_CLOEXEC | (mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR | O_CREAT);
  if (mode == OpenMode::kReadWriteDirect) {
    const int direct = ::open(path.c_str(), flags | O_DIRECT, kFileMode);
    if (direct >= 0) return {std::make_unique<PosixFile>(direct, true), 0};
  }
  const int plain = ::open(path.c_str(), flags, kFileMode);
  if (plain < 0) return {nullptr, errno};
  return {std::make_unique<PosixFile>(plain, false), 0};
}

std::vector<FileSize> PosixFiles::list() {
  std::vector<FileSize> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    struct stat now = {};
    if (::stat(entry.path().c_str(), &now) != 0 || !S_ISREG(now.st_mode)) continue;
    files.push_back({entry.path().filename().string(),
                     static_cast<std::uint64_t>(now.st_blocks) * kBlockBytes, now.st_mtime});
  }
  return files;
}

int PosixFiles::remove(const std::string& name) {
  return ::unlink((path_ + "/" + name).c_str()) == 0 ? 0 : errno;
}

int PosixFiles::sync_folder() {
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int error = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  return error;
}

}  // namespace pagoda::store
