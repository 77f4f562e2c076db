// Writes the part of MessagePack that batches of events need: each item in its shortest form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pagoda::events {

class MsgpackWriter {
 public:
  void nil() { byte(0xC0); }
  void boolean(bool value) { byte(value ? 0xC3 : 0xC2); }
  void number(std::uint64_t value);
  void number(double value);
  void text(std::string_view text);
  void bytes(std::span<const std::byte> bytes);
  // Announces how many items, or pairs of key and value, follow.
  void array(std::size_t items);
  void map(std::size_t pairs);
  // Appends items that another writer wrote.
  void append(const MsgpackWriter& items) { written_ += items.written_; }

  const std::string& written() const { return written_; }
  std::string take() { return std::exchange(written_, {}); }
  void clear() { written_.clear(); }

 private:
  // Formats hold the first byte of an item's head by the width of its count; one byte holds both
  // where the count is at most `small_max`.
  struct Formats {
    std::uint8_t small;
    std::uint64_t small_max;
    std::uint8_t bits8;  // 0: the format has none
    std::uint8_t bits16;
    std::uint8_t bits32;
  };

  void byte(std::uint64_t value) { written_ += static_cast<char>(value & 0xFF); }
  void big_endian(std::uint64_t value, int bytes);
  void count(const Formats& formats, std::uint64_t count);

  std::string written_;
};

}  // namespace pagoda::events
