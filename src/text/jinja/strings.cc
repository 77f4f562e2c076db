#include "text/jinja/strings.h"

#include <algorithm>
#include <utility>

#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

std::size_t leading_bytes(std::string_view text, std::string_view characters) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t bytes = character_at(text, at).bytes;
    if (characters.find(text.substr(at, bytes)) == std::string_view::npos) break;
    at += bytes;
  }
  return at;
}

std::size_t trailing_bytes(std::string_view text, std::string_view characters) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
    if (characters.find(text.substr(begin, end - begin)) == std::string_view::npos) break;
    end = begin;
  }
  return text.size() - end;
}

std::vector<Value> split_at_space(const OriginText& text, std::int64_t most, Heap& heap) {
  const std::string_view bytes = text.bytes();
  std::vector<Value> parts;
  std::size_t at = leading_space_bytes(bytes);
  while (at < bytes.size()) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      const std::size_t end = bytes.size() - trailing_space_bytes(bytes);
      parts.push_back(heap.text(text.slice(at, end)));
      break;
    }
    std::size_t end = at;
    while (end < bytes.size() && !is_space(character_at(bytes, end).code)) {
      end += character_at(bytes, end).bytes;
    }
    parts.push_back(heap.text(text.slice(at, end)));
    at = end + leading_space_bytes(bytes.substr(end));
  }
  return parts;
}

bool begins_word(char32_t before, Case to) {
  if (to == Case::kTitle) return !is_letter(before);
  return is_space(before) || before == '-' || before == '(' || before == '{' || before == '[' ||
         before == '<';
}

}  // namespace

Value strip(const OriginText& text, Side side, std::optional<std::string_view> characters,
            Heap& heap) {
  std::string_view bytes = text.bytes();
  std::size_t begin = 0;
  if (side != Side::kRight) {
    begin = characters ? leading_bytes(bytes, *characters) : leading_space_bytes(bytes);
  }
  bytes.remove_prefix(begin);
  if (side != Side::kLeft) {
    bytes.remove_suffix(characters ? trailing_bytes(bytes, *characters)
                                   : trailing_space_bytes(bytes));
  }
  return heap.text(text.slice(begin, begin + bytes.size()));
}

Value replace(const OriginText& text, const OriginText& from, const OriginText& to,
              std::int64_t most, Heap& heap) {
  const std::string_view bytes = text.bytes();
  OriginText out;
  std::size_t at = 0;
  for (std::int64_t done = 0; most < 0 || done < most; ++done) {
    const std::size_t found = bytes.find(from.bytes(), at);
    if (found == std::string_view::npos) break;
    heap.reserve_text(to.size());
    out.append(text, at, found);
    out.append(to);
    at = found + from.size();
    if (!from.empty()) continue;
    // An empty text is found before every character and at the end.
    if (at == bytes.size()) break;
    const std::size_t next = at + character_at(bytes, at).bytes;
    out.append(text, at, next);
    at = next;
  }
  out.append(text, at, bytes.size());
  return heap.text(std::move(out));
}

std::vector<Value> split(const OriginText& text, std::optional<std::string_view> separator,
                         std::int64_t most, Heap& heap) {
  if (!separator) return split_at_space(text, most, heap);
  if (separator->empty()) fail("split: the separator is empty");
  std::vector<Value> parts;
  std::size_t begin = 0;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t found = text.bytes().find(*separator, begin);
    if (found == std::string_view::npos) break;
    parts.push_back(heap.text(text.slice(begin, found)));
    begin = found + separator->size();
  }
  parts.push_back(heap.text(text.slice(begin, text.size())));
  return parts;
}

std::vector<Value> split_from_right(const OriginText& text, std::string_view separator,
                                    std::int64_t most, Heap& heap) {
  if (separator.empty()) fail("rsplit: the separator is empty");
  std::vector<Value> parts;
  std::size_t end = text.size();
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t found = text.bytes().substr(0, end).rfind(separator);
    if (found == std::string_view::npos) break;
    parts.push_back(heap.text(text.slice(found + separator.size(), end)));
    end = found;
  }
  parts.push_back(heap.text(text.slice(0, end)));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> split_lines(const OriginText& text, Heap& heap) {
  const auto ends_line = [](char32_t code) {
    return (code >= '\n' && code <= '\r') || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
  };
  const std::string_view bytes = text.bytes();
  std::vector<Value> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const std::size_t end = at;
    at += character.bytes;
    if (!ends_line(character.code)) continue;
    if (character.code == '\r' && bytes.substr(at).starts_with('\n')) ++at;
    lines.push_back(heap.text(text.slice(begin, end)));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(heap.text(text.slice(begin, bytes.size())));
  return lines;
}

Value change_case(const OriginText& text, Case to, Heap& heap) {
  const std::string_view bytes = text.bytes();
  OriginText out;
  std::string changed;
  char32_t before = ' ';
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    bool upper = to == Case::kUpper;
    if (to == Case::kCapitalised) upper = at == 0;
    if (to == Case::kTitle || to == Case::kTitleWords) upper = at == 0 || begins_word(before, to);
    changed.clear();
    append_utf8(changed, upper ? to_upper(character.code) : to_lower(character.code));
    out.append(changed, text.origin_at(at));
    before = character.code;
    at += character.bytes;
  }
  return heap.text(std::move(out));
}

Value indent(const OriginText& text, std::string_view margin, bool first, bool blank, Heap& heap) {
  const std::vector<Value> lines = split_lines(text, heap);
  OriginText out;
  if (first) out.append(margin, {});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const OriginText& line = lines[i].as_text();
    heap.reserve_text(margin.size());
    if (i > 0) out.append("\n", {});
    if (i > 0 && (blank || !line.empty())) out.append(margin, {});
    out.append(line);
  }
  if (text.bytes().ends_with('\n')) {
    out.append("\n", {});
    if (blank) out.append(margin, {});
  }
  return heap.text(std::move(out));
}

}  // namespace pagoda::text::jinja
