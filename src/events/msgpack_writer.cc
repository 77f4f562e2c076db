#include "events/msgpack_writer.h"

#include <bit>

namespace pagoda::events {

void MsgpackWriter::big_endian(std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) byte(value >> shift);
}

void MsgpackWriter::count(const Formats& formats, std::uint64_t count) {
  if (count <= formats.small_max) return byte(formats.small | count);
  if (count <= UINT8_MAX && formats.bits8 != 0) {
    byte(formats.bits8);
    big_endian(count, 1);
  } else if (count <= UINT16_MAX) {
    byte(formats.bits16);
    big_endian(count, 2);
  } else {
    byte(formats.bits32);
    big_endian(count, 4);
  }
}

void MsgpackWriter::number(std::uint64_t value) {
  constexpr Formats kUnsigned = {0x00, 0x7F, 0xCC, 0xCD, 0xCE};
  if (value <= UINT32_MAX) return count(kUnsigned, value);
  byte(0xCF);
  big_endian(value, 8);
}

void MsgpackWriter::number(double value) {
  byte(0xCB);
  big_endian(std::bit_cast<std::uint64_t>(value), 8);
}

void MsgpackWriter::text(std::string_view text) {
  count({0xA0, 31, 0xD9, 0xDA, 0xDB}, text.size());
  written_ += text;
}

void MsgpackWriter::bytes(std::span<const std::byte> bytes) {
  // Byte strings have no one-byte head.
  if (bytes.size() <= UINT8_MAX) {
    byte(0xC4);
    big_endian(bytes.size(), 1);
  } else {
    count({0, 0, 0, 0xC5, 0xC6}, bytes.size());
  }
  written_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void MsgpackWriter::array(std::size_t items) { count({0x90, 15, 0, 0xDC, 0xDD}, items); }
void MsgpackWriter::map(std::size_t pairs) { count({0x80, 15, 0, 0xDE, 0xDF}, pairs); }

}  // namespace pagoda::events
