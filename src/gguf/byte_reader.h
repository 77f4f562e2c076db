// Reads a GGUF header front to back. Nothing is read before it is known to be there; every
// failure names the source, the offset, what was wanted and what is left.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace pagoda::gguf {

static_assert(std::endian::native == std::endian::little,
              "GGUF numbers are little-endian and read in place");

// A number at `at`, which need not be aligned.
template <class T>
T load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

class ByteReader {
 public:
  // `bytes` and `source` outlive the reader.
  ByteReader(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t remaining() const { return bytes_.size() - offset_; }
  std::span<const std::byte> since(std::uint64_t offset) const {
    return bytes_.subspan(offset, offset_ - offset);
  }

  // `what` names the thing in messages: "the tensor count".
  Result<std::span<const std::byte>> take(std::uint64_t size, std::string_view what);

  template <class T>
  Result<T> number(std::string_view what) {
    ASSIGN_OR_RETURN(const auto bytes, take(sizeof(T), what));
    return load<T>(bytes.data());
  }

  // A u64 length, then that many bytes; at most `bytes_max` of them.
  Result<std::string_view> text(std::uint64_t bytes_max, std::string_view what);

  // A count of things that take at least `item_bytes` each, refused when they cannot fit in what
  // is left. `count` was read just before, at `offset`.
  Status check_count(std::uint64_t count, std::uint64_t item_bytes, std::uint64_t offset,
                     std::string_view what) const;

  Error corrupt(std::uint64_t offset, std::string_view message) const;
  Error unsupported(std::uint64_t offset, std::string_view message) const;

 private:
  std::span<const std::byte> bytes_;
  const std::string& source_;
  std::uint64_t offset_ = 0;
};

}  // namespace pagoda::gguf
