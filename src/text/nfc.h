// Unicode's normalization form C, in which some vocabularies expect a text (Qwen's): letters and
// their marks are one character where there is one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text {

// One byte of a text in NFC came of at most so many, rounded up: U+1FBE U+0308 U+0301, 7 bytes, is
// U+0390, 2 bytes.
inline constexpr std::size_t kNfcBytesMax = 4;

// A letter with more marks than this stays as it is: the order of marks is found in time by their
// square. Unicode's stream-safe texts have at most 30.
inline constexpr std::size_t kNfcMarksMax = 64;

// A text in NFC, with where its bytes were before. Bytes that are not UTF-8 stay.
class NfcText {
 public:
  // `text` must outlive the object.
  explicit NfcText(std::string_view text);
  NfcText(const NfcText&) = delete;
  NfcText& operator=(const NfcText&) = delete;

  std::string_view bytes() const { return changes_.empty() ? text_ : std::string_view(made_); }
  // Returns where the original of the byte at `offset` lies in the text. In a character that was
  // composed it is the character's first byte. Offsets must ascend from call to call.
  std::size_t place_of(std::size_t offset);

 private:
  // A part of the text, and what it became.
  struct Change {
    std::size_t begin;  // in the text
    std::size_t end;
    std::size_t made_begin;
    std::size_t made_end;
  };

  void append_change(std::size_t begin, std::size_t end, std::string_view made);

  std::string_view text_;
  std::string made_;  // empty as long as nothing has changed
  std::vector<Change> changes_;
  std::size_t change_ = 0;  // the first change that place_of() has not passed
};

}  // namespace pagoda::text
