#include "gguf/byte_reader.h"

#include <fmt/format.h>

namespace pagoda::gguf {

Result<std::span<const std::byte>> ByteReader::take(std::uint64_t size, std::string_view what) {
  if (size > remaining()) {
    return corrupt(offset_, fmt::format("{} needs {} bytes, {} are left of {}", what, size,
                                        remaining(), bytes_.size()));
  }
  const auto taken = bytes_.subspan(offset_, size);
  offset_ += size;
  return taken;
}

Result<std::string_view> ByteReader::text(std::uint64_t bytes_max, std::string_view what) {
  const std::uint64_t start = offset_;
  ASSIGN_OR_RETURN(const std::uint64_t size, number<std::uint64_t>(what));
  if (size > bytes_max) {
    return corrupt(start, fmt::format("{} has {} bytes, the limit is {}", what, size, bytes_max));
  }
  ASSIGN_OR_RETURN(const auto bytes, take(size, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status ByteReader::check_count(std::uint64_t count, std::uint64_t item_bytes, std::uint64_t offset,
                               std::string_view what) const {
  const std::uint64_t count_max = remaining() / item_bytes;
  if (count > count_max) {
    return corrupt(offset, fmt::format("{} is {}, the {} bytes left can hold at most {}", what,
                                       count, remaining(), count_max));
  }
  return ok_status();
}

Error ByteReader::corrupt(std::uint64_t offset, std::string_view message) const {
  return {ErrorCode::kCorrupt, fmt::format("{}: at offset {}: {}", source_, offset, message)};
}

Error ByteReader::unsupported(std::uint64_t offset, std::string_view message) const {
  return {ErrorCode::kUnsupported, fmt::format("{}: at offset {}: {}", source_, offset, message)};
}

}  // namespace pagoda::gguf
