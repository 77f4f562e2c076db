#include "gguf/file_state.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace pagoda::gguf {
namespace {

constexpr std::int64_t kTickNs = 2'000'000'000;  // the coarsest clock of any file system, FAT's

// The numbers of linux/magic.h, whose list depends on the version of the kernel headers.
constexpr auto kLocalFilesystems = std::to_array<std::uint64_t>({
    0xEF53,      // ext2, ext3, ext4
    0x58465342,  // XFS
    0x9123683E,  // btrfs
    0x2FC12FC1,  // ZFS
    0xF2F52010,  // F2FS
    0xCA451A4E,  // bcachefs
    0x3153464A,  // JFS
    0x3434,      // NILFS
    0x52654973,  // ReiserFS
    0x01021994,  // tmpfs
    0x858458F6,  // ramfs
});

Error system_error(const std::string& path) {
  return {ErrorCode::kIo, fmt::format("{}: {}", path, std::generic_category().message(errno))};
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

bool FileState::differs_in_change_time_alone(const FileState& other) const {
  FileState same = other;
  same.changed_ns = changed_ns;
  return *this == same;
}

Result<FileState> file_state(int descriptor, const std::string& path) {
  struct statfs filesystem = {};
  if (fstatfs(descriptor, &filesystem) != 0) return system_error(path);
  // The type is 32 bits wide; where the field is wider and signed, it may come sign-extended.
  return file_state(descriptor, path, static_cast<std::uint32_t>(filesystem.f_type));
}

Result<FileState> file_state(int descriptor, const std::string& path, std::uint64_t filesystem) {
  struct stat file = {};
  if (fstat(descriptor, &file) != 0) return system_error(path);
  return FileState{.device = file.st_dev,
                   .inode = file.st_ino,
                   .bytes = static_cast<std::uint64_t>(file.st_size),
                   .modified_ns = nanoseconds(file.st_mtim),
                   .changed_ns = nanoseconds(file.st_ctim),
                   .filesystem = filesystem};
}

bool keeps_change_times(std::uint64_t filesystem) {
  return std::find(kLocalFilesystems.begin(), kLocalFilesystems.end(), filesystem) !=
         kLocalFilesystems.end();
}

bool tells_changes(const FileState& state, std::int64_t now_ns) {
  return keeps_change_times(state.filesystem) && now_ns - state.changed_ns >= kTickNs;
}

}  // namespace pagoda::gguf
