// Reads a GGUF header front to back. Every read is checked against the bytes that are left; every
// error names the source, the offset, the item and the bytes that are left.
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

// Loads a number at `at`, which need not be aligned.
template <class T>
T load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

class ByteReader {
 public:
  // `bytes` and `source` must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t remaining() const { return bytes_.size() - offset_; }
  std::span<const std::byte> since(std::uint64_t offset) const {
    return bytes_.subspan(offset, offset_ - offset);
  }

  // `what` names the item in messages: "the tensor count".
  Result<std::span<const std::byte>> take(std::uint64_t size, std::string_view what);

  template <class T>
  Result<T> number(std::string_view what) {
    ASSIGN_OR_RETURN(const auto bytes, take(sizeof(T), what));
    return load<T>(bytes.data());
  }

  // Reads a u64 length, then that many bytes, at most `bytes_max`.
  Result<std::string_view> text(std::uint64_t bytes_max, std::string_view what);

  // Checks a count of items that take at least `item_bytes` each against the bytes that are left.
  // `count` was read just before, at `offset`.
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
