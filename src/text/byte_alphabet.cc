#include "text/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "text/utf8.h"

namespace pagoda::text {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::size_t kAlphabetLetters = 0x100 + 68;

// Maps a code point to its byte; -1 for code points outside the alphabet.
constexpr std::array<std::int16_t, kAlphabetLetters> make_byte_of_letter() {
  std::array<std::int16_t, kAlphabetLetters> byte_of_letter{};
  byte_of_letter.fill(-1);
  std::size_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::size_t letter = stands_for_itself(byte) ? byte : next++;
    byte_of_letter[letter] = static_cast<std::int16_t>(byte);
  }
  return byte_of_letter;
}

constexpr auto kByteOfLetter = make_byte_of_letter();

}  // namespace

bool append_alphabet_bytes(std::string_view letters, std::string& bytes) {
  const std::size_t before = bytes.size();
  while (!letters.empty()) {
    const std::size_t length = utf8_char_bytes(letters);
    const char32_t code =
        length == 0 ? char32_t{kAlphabetLetters} : utf8_code_point(letters, length);
    if (code >= kAlphabetLetters || kByteOfLetter[code] < 0) {
      bytes.resize(before);
      return false;
    }
    bytes.push_back(static_cast<char>(kByteOfLetter[code]));
    letters.remove_prefix(length);
  }
  return true;
}

}  // namespace pagoda::text
