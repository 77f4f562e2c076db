#include "text/nfc.h"

#include <utf8proc.h>

#include <array>
#include <cstdint>
#include <optional>

#include "text/utf8.h"

namespace pagoda::text {
namespace {

// No character below this one is a mark, and none of them becomes another.
constexpr char32_t kFirstMark = 0x300;

// Does `code` combine with nothing before it?
bool begins_segment(char32_t code) {
  if (code < kFirstMark) return true;
  const bool is_jamo = code >= 0x1160 && code <= 0x11FF;  // vowels and finals of Hangul
  const bool is_kirat = code >= 0x16D63 && code <= 0x16D6A;
  if (is_jamo || is_kirat) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return false;
    default:
      return true;
  }
}

// The longest decomposition of a character has four.
using Codes = std::array<utf8proc_int32_t, 4 * (kNfcMarksMax + 1) + 1>;

// Returns a segment's characters in NFC; nothing where it is longer than is looked at. The result
// views `codes`.
std::optional<std::string_view> normalise(std::string_view segment, Codes& codes) {
  constexpr auto kForm = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t count = utf8proc_decompose(
      reinterpret_cast<const utf8proc_uint8_t*>(segment.data()),
      static_cast<utf8proc_ssize_t>(segment.size()), codes.data(), codes.size() - 1, kForm);
  if (count < 0 || static_cast<std::size_t>(count) > codes.size() - 1) return std::nullopt;
  const utf8proc_ssize_t bytes = utf8proc_reencode(codes.data(), count, kForm);
  if (bytes < 0) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(codes.data()),
                          static_cast<std::size_t>(bytes));
}

// Returns the end of the segment that begins at `begin`, and its characters: one that combines with
// nothing before it, and those that may.
struct Segment {
  std::size_t end;
  std::size_t characters;
};
Segment segment_at(std::string_view text, std::size_t begin) {
  Segment segment{begin, 0};
  while (segment.end < text.size()) {
    const std::string_view rest = text.substr(segment.end);
    const std::size_t bytes = utf8_char_bytes(rest);
    if (bytes == 0) break;
    if (segment.characters > 0 && begins_segment(utf8_code_point(rest, bytes))) break;
    segment.end += bytes;
    ++segment.characters;
  }
  return segment;
}

// Returns the bytes at the front of `text` that are below the first mark, but for the last one,
// which a mark may follow.
std::size_t plain_prefix(std::string_view text) {
  constexpr unsigned char kFirstLead = 0xCC;  // of U+0300
  std::size_t at = 0;
  while (at < text.size() && static_cast<unsigned char>(text[at]) < kFirstLead) ++at;
  if (at == text.size() || at == 0) return at;
  --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

NfcText::NfcText(std::string_view text) : text_(text) {
  Codes codes;
  for (std::size_t at = 0; at < text.size();) {
    at += plain_prefix(text.substr(at));
    if (at == text.size()) break;
    const Segment segment = segment_at(text, at);
    if (segment.characters == 0) {
      ++at;  // no UTF-8
      continue;
    }
    const std::string_view bytes = text.substr(at, segment.end - at);
    const bool is_looked_at = segment.characters <= kNfcMarksMax + 1;
    const auto made = is_looked_at ? normalise(bytes, codes) : std::nullopt;
    if (made && *made != bytes) append_change(at, segment.end, *made);
    at = segment.end;
  }
  if (!changes_.empty()) made_.append(text.substr(changes_.back().end));
}

void NfcText::append_change(std::size_t begin, std::size_t end, std::string_view made) {
  const std::size_t before = changes_.empty() ? 0 : changes_.back().end;
  made_.append(text_.substr(before, begin - before));
  const std::size_t made_begin = made_.size();
  made_.append(made);
  changes_.push_back({begin, end, made_begin, made_.size()});
}

std::size_t NfcText::place_of(std::size_t offset) {
  while (change_ < changes_.size() && changes_[change_].made_end <= offset) ++change_;
  if (change_ < changes_.size() && changes_[change_].made_begin <= offset) {
    return changes_[change_].begin;
  }
  if (change_ == 0) return offset;
  const Change& last = changes_[change_ - 1];
  return last.end + (offset - last.made_end);
}

}  // namespace pagoda::text
