#include "text/jinja/strings.h"

#include <algorithm>
#include <utility>

#include "text/jinja/search.h"
#include "text/jinja/text_builder.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

// Returns the sorted code points of `characters`.
std::vector<char32_t> character_set(std::string_view characters, Heap& heap) {
  heap.read_characters(characters.size());
  heap.reserve(characters.size() * sizeof(char32_t));
  std::vector<char32_t> codes;
  for (std::size_t at = 0; at < characters.size();) {
    const Character character = character_at(characters, at);
    codes.push_back(character.code);
    at += character.bytes;
  }
  std::sort(codes.begin(), codes.end());
  return codes;
}

// Strips the characters for which `goes` is true from `side` of `bytes`.
template <class Goes>
std::string_view stripped(std::string_view bytes, Side side, const Goes& goes) {
  while (side != Side::kRight && !bytes.empty()) {
    const Character first = character_at(bytes, 0);
    if (!goes(first.code)) break;
    bytes.remove_prefix(first.bytes);
  }
  while (side != Side::kLeft && !bytes.empty()) {
    const Character last = character_before(bytes, bytes.size());
    if (!goes(last.code)) break;
    bytes.remove_suffix(last.bytes);
  }
  return bytes;
}

std::vector<Value> split_at_space(const OriginText& text, std::int64_t most, Heap& heap) {
  heap.read_characters(text.size());
  const std::string_view bytes = text.bytes();
  std::vector<Value> parts;
  std::size_t at = leading_space_bytes(bytes);
  while (at < bytes.size()) {
    std::size_t end = bytes.size();
    if (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
      end = at;
      while (end < bytes.size() && !is_space(character_at(bytes, end).code)) {
        end += character_at(bytes, end).bytes;
      }
    }
    parts.push_back(heap.text(text, at, end));
    at = end + leading_space_bytes(bytes.substr(end));
  }
  return parts;
}

std::vector<Value> split_at_space_from_right(const OriginText& text, std::int64_t most,
                                             Heap& heap) {
  heap.read_characters(text.size());
  const std::string_view bytes = text.bytes();
  std::vector<Value> parts;
  std::size_t end = bytes.size() - trailing_space_bytes(bytes);
  while (end > 0) {
    std::size_t begin = 0;
    if (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
      begin = end;
      while (begin > 0 && !is_space(character_before(bytes, begin).code)) {
        begin -= character_before(bytes, begin).bytes;
      }
    }
    parts.push_back(heap.text(text, begin, end));
    end = begin - trailing_space_bytes(bytes.substr(0, begin));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Returns whether the capital sigma at byte `at` ends a word: a cased letter precedes it and none
// follows, ignoring accents and apostrophes in between.
bool is_final_sigma(std::string_view bytes, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && is_case_ignorable(character_before(bytes, begin).code)) {
    begin -= character_before(bytes, begin).bytes;
  }
  if (begin == 0 || !is_cased(character_before(bytes, begin).code)) return false;
  std::size_t end = at + character_at(bytes, at).bytes;
  while (end < bytes.size() && is_case_ignorable(character_at(bytes, end).code)) {
    end += character_at(bytes, end).bytes;
  }
  return end == bytes.size() || !is_cased(character_at(bytes, end).code);
}

void append_lower_at(std::string& changed, std::string_view bytes, std::size_t at) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  const char32_t code = character_at(bytes, at).code;
  if (code == kCapitalSigma && is_final_sigma(bytes, at)) {
    append_utf8(changed, kFinalSigma);
  } else {
    append_lower(changed, code);
  }
}

bool parts_words(char32_t code) {
  return is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<';
}

// Appends the character at byte `at` in upper case, title case, …
void append_changed(std::string& changed, std::string_view bytes, std::size_t at, Case to) {
  const char32_t code = character_at(bytes, at).code;
  const bool begins =
      at == 0 || (to == Case::kTitle && !is_cased(character_before(bytes, at).code));
  if (to == Case::kUpper || (to == Case::kTitleWords && begins)) {
    append_upper(changed, code);
  } else if (to != Case::kLower && begins) {
    append_title(changed, code);
  } else if (to == Case::kTitleWords) {
    // The first character has been handled before.
    const std::size_t first = character_at(bytes, 0).bytes;
    append_lower_at(changed, bytes.substr(first), at - first);
  } else {
    append_lower_at(changed, bytes, at);
  }
}

}  // namespace

Value strip(const OriginText& text, Side side, std::optional<std::string_view> characters,
            Heap& heap) {
  const std::string_view bytes = text.bytes();
  std::string_view left;
  if (characters) {
    const std::vector<char32_t> codes = character_set(*characters, heap);
    left = stripped(bytes, side, [&](char32_t code) {
      return std::binary_search(codes.begin(), codes.end(), code);
    });
  } else {
    left = stripped(bytes, side, is_space);
  }
  heap.read_characters(bytes.size() - left.size());
  const auto begin = static_cast<std::size_t>(left.data() - bytes.data());
  return heap.text(text, begin, begin + left.size());
}

Value replace(const OriginText& text, const OriginText& from, const OriginText& to,
              std::int64_t most, Heap& heap) {
  const std::string_view bytes = text.bytes();
  const Search search(from.bytes(), Direction::kForward, heap);
  TextBuilder out(heap);
  std::size_t at = 0;
  for (std::int64_t done = 0; most < 0 || done < most; ++done) {
    const std::size_t found = search.next(bytes.substr(at));
    if (found == std::string_view::npos) break;
    heap.step();
    out.append(text, at, at + found);
    out.append(to);
    at += found + from.size();
    if (!from.empty()) continue;
    // An empty text is found before every character and at the end.
    if (at == bytes.size()) break;
    const std::size_t next = at + character_at(bytes, at).bytes;
    out.append(text, at, next);
    at = next;
  }
  out.append(text, at, bytes.size());
  return std::move(out).value();
}

std::vector<Value> split(const OriginText& text, std::optional<std::string_view> separator,
                         std::int64_t most, Heap& heap) {
  if (!separator) return split_at_space(text, most, heap);
  if (separator->empty()) fail("split: the separator is empty");
  const Search search(*separator, Direction::kForward, heap);
  std::vector<Value> parts;
  std::size_t begin = 0;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t found = search.next(text.bytes().substr(begin));
    if (found == std::string_view::npos) break;
    parts.push_back(heap.text(text, begin, begin + found));
    begin += found + separator->size();
  }
  parts.push_back(heap.text(text, begin, text.size()));
  return parts;
}

std::vector<Value> split_from_right(const OriginText& text,
                                    std::optional<std::string_view> separator, std::int64_t most,
                                    Heap& heap) {
  if (!separator) return split_at_space_from_right(text, most, heap);
  if (separator->empty()) fail("rsplit: the separator is empty");
  const Search search(*separator, Direction::kBackward, heap);
  std::vector<Value> parts;
  std::size_t end = text.size();
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t found = search.next(text.bytes().substr(0, end));
    if (found == std::string_view::npos) break;
    parts.push_back(heap.text(text, found + separator->size(), end));
    end = found;
  }
  parts.push_back(heap.text(text, 0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_lines(const OriginText& text, bool keep_ends, Heap& heap) {
  heap.read_characters(text.size());
  const std::string_view bytes = text.bytes();
  std::vector<Value> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const std::size_t end = at;
    at += character.bytes;
    if (!ends_line(character.code)) continue;
    if (character.code == '\r' && bytes.substr(at).starts_with('\n')) ++at;
    lines.push_back(heap.text(text, begin, keep_ends ? at : end));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(heap.text(text, begin, bytes.size()));
  return lines;
}

Value change_case(const OriginText& text, Case to, Heap& heap) {
  heap.read_characters(text.size());
  const std::string_view bytes = text.bytes();
  TextBuilder out(heap);
  std::string changed;
  for (std::size_t begin = 0; begin < bytes.size();) {
    // The filter `title` changes words and separators one by one.
    std::size_t end = to == Case::kTitleWords ? begin : bytes.size();
    const bool parts = parts_words(character_at(bytes, begin).code);
    while (end < bytes.size() && parts_words(character_at(bytes, end).code) == parts) {
      end += character_at(bytes, end).bytes;
    }
    const std::string_view piece = bytes.substr(begin, end - begin);
    for (std::size_t at = 0; at < piece.size(); at += character_at(piece, at).bytes) {
      changed.clear();
      append_changed(changed, piece, at, to);
      out.append(changed, text.origin_at(begin + at));
    }
    begin = end;
  }
  return std::move(out).value();
}

Value indent(const OriginText& text, std::string_view margin, bool first, bool blank, Heap& heap) {
  std::vector<Value> lines = split_lines(text, false, heap);
  // Jinja splits the text with a newline appended: where a line already ended there, an empty line
  // follows, but a carriage return and that newline are one line end.
  if (!text.empty()) {
    const char32_t last = character_before(text.bytes(), text.size()).code;
    if (ends_line(last) && last != '\r') lines.push_back(heap.text(std::string()));
  }
  TextBuilder out(heap);
  if (first) out.append(margin, {});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const OriginText& line = lines[i].as_text();
    if (i > 0) out.append("\n", {});
    if (i > 0 && (blank || !line.empty())) out.append(margin, {});
    out.append(line);
  }
  return std::move(out).value();
}

}  // namespace pagoda::text::jinja
