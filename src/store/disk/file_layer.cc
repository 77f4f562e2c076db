#include "store/disk/file_layer.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "store/disk/format.h"

namespace pagoda::store {

IoResult read_all(DiskFile& file, std::uint64_t offset, std::span<std::byte> bytes) {
  IoResult total;
  while (total.bytes < bytes.size()) {
    const IoResult part = file.read_at(offset + total.bytes, bytes.subspan(total.bytes));
    if (part.error == EINTR) continue;
    total.error = part.error;
    if (part.error != 0) return total;
    if (part.bytes == 0) break;
    total.bytes += part.bytes;
    // Direct reads stop inside a sector only at the file's end.
    if (file.is_direct() && part.bytes % kIoAlignment != 0) break;
  }
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(total.bytes), bytes.end(), std::byte{0});
  return total;
}

IoResult write_all(DiskFile& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  IoResult total;
  while (total.bytes < bytes.size()) {
    const IoResult part = file.write_at(offset + total.bytes, bytes.subspan(total.bytes));
    if (part.error == EINTR) continue;
    total.error = part.error;
    if (part.error == 0 && part.bytes == 0) total.error = EIO;
    if (total.error != 0) return total;
    total.bytes += part.bytes;
  }
  return total;
}

std::string error_text(int error) { return std::generic_category().message(error); }

}  // namespace pagoda::store
