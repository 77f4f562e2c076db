#include "store/disk/disk_options.h"

#include <algorithm>

#include "store/disk/format.h"
#include "store/disk/posix_files.h"

namespace pagoda::store {

std::uint64_t default_disk_bytes(std::uint64_t bytes_free, std::uint64_t bytes_taken) {
  constexpr std::uint64_t kBytesMost = std::uint64_t{20} << 30;
  constexpr std::uint64_t kPart = 10;
  return std::min(kBytesMost, (bytes_free + bytes_taken) / kPart);
}

std::uint64_t bytes_taken(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const FileSize& file : PosixFiles(path).list()) {
    const bool is_ours =
        geometry_of(file.name, kSlabSuffix) || geometry_of(file.name, kIndexSuffix);
    if (is_ours) bytes += file.bytes_on_disk;
  }
  return bytes;
}

}  // namespace pagoda::store
