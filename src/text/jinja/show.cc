#include "text/jinja/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

constexpr Origin kTemplate{};

void append_repr(const Value& value, TextBuilder& out);

std::string python_escape(const Character& character, char quote) {
  switch (character.code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (character.code == static_cast<unsigned char>(quote)) return fmt::format("\\{}", quote);
  if (is_printable(character.code)) return {};
  const auto code = static_cast<std::uint32_t>(character.code);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

// `escape(Character)` returns the character's escape, or nothing when it stands for itself.
template <class Escape>
void append_escaped(const OriginText& text, TextBuilder& out, const Escape& escape) {
  const std::string_view bytes = text.bytes();
  out.heap().read_characters(bytes.size());
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const std::string instead = escape(character);
    if (!instead.empty()) {
      out.append(text, begin, at);
      out.append(instead, text.origin_at(at));
      begin = at + character.bytes;
    }
    at += character.bytes;
  }
  out.append(text, begin, bytes.size());
}

void append_quoted(const OriginText& text, TextBuilder& out) {
  const bool single = text.bytes().find('\'') != std::string_view::npos;
  const bool both = single && text.bytes().find('"') != std::string_view::npos;
  const char quote = single && !both ? '"' : '\'';
  out.append({&quote, 1}, kTemplate);
  append_escaped(text, out, [&](const Character& c) { return python_escape(c, quote); });
  out.append({&quote, 1}, kTemplate);
}

void append_list(const List& list, TextBuilder& out) {
  const bool tuple = list.kind == ListKind::kTuple;
  out.append(tuple ? "(" : "[", kTemplate);
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.append(", ", kTemplate);
    append_repr(list.items[i], out);
  }
  if (tuple && list.items.size() == 1) out.append(",", kTemplate);
  out.append(tuple ? ")" : "]", kTemplate);
}

void append_dict(const Dict& dict, TextBuilder& out) {
  out.append("{", kTemplate);
  bool first = true;
  for (const Dict::Entry& entry : dict.entries()) {
    if (!first) out.append(", ", kTemplate);
    first = false;
    append_repr(entry.key, out);
    out.append(": ", kTemplate);
    append_repr(entry.value, out);
  }
  out.append("}", kTemplate);
}

void append_repr(const Value& value, TextBuilder& out) {
  const Heap::Level level(out.heap());
  out.heap().step();
  switch (value.kind()) {
    case Kind::kUndefined:
      out.append("Undefined", kTemplate);
      break;
    case Kind::kNone:
      out.append("None", value.origin());
      break;
    case Kind::kBool:
      out.append(value.as_bool() ? "True" : "False", value.origin());
      break;
    case Kind::kInteger:
      out.append(std::to_string(value.as_integer()), value.origin());
      break;
    case Kind::kFloat:
      out.append(python_float(value.as_real()), value.origin());
      break;
    case Kind::kText:
      append_quoted(value.as_text(), out);
      break;
    case Kind::kList:
      append_list(value.as_list(), out);
      break;
    case Kind::kDict:
      append_dict(value.as_dict(), out);
      break;
    default:
      fail(fmt::format("a {} cannot be shown", value.type_name()));
  }
}

std::string json_escape(const Character& character, bool ensure_ascii) {
  const auto code = static_cast<std::uint32_t>(character.code);
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  if (code >= 0x10000 && ensure_ascii) {
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                       0xDC00 + ((code - 0x10000) & 0x3FFU));
  }
  const bool escaped = code < 0x20 || (ensure_ascii && code > 0x7E);
  return escaped ? fmt::format("\\u{:04x}", code) : std::string();
}

class JsonWriter {
 public:
  JsonWriter(const JsonLayout& style, Heap& heap) : style_(style), heap_(heap), out_(heap) {}

  Value write(const Value& value) {
    append(value);
    return std::move(out_).value();
  }

 private:
  void append(const Value& value) {
    const Heap::Level level(heap_);
    heap_.step();
    switch (value.kind()) {
      case Kind::kList:
        return append_items(value.as_list().items);
      case Kind::kDict:
        return append_entries(value.as_dict());
      default:
        return append_scalar(value);
    }
  }

  // A function of its own, so that its temporaries take no stack at every level of nesting.
  [[gnu::noinline]] void append_scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return out_.append("null", value.origin());
      case Kind::kBool:
        return out_.append(value.as_bool() ? "true" : "false", value.origin());
      case Kind::kInteger:
        return out_.append(std::to_string(value.as_integer()), value.origin());
      case Kind::kFloat:
        return out_.append(json_float(value.as_real()), value.origin());
      case Kind::kText:
        return append_text(value.as_text());
      default:
        fail(fmt::format("tojson: a {} has no JSON", value.type_name()));
    }
  }

  static std::string json_float(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return python_float(value);
  }

  void append_text(const OriginText& text) {
    out_.append("\"", kTemplate);
    append_escaped(text, out_,
                   [&](const Character& c) { return json_escape(c, style_.ensure_ascii); });
    out_.append("\"", kTemplate);
  }

  void begin_line() {
    if (!style_.has_indent) return;
    out_.append("\n", kTemplate);
    heap_.step(nesting_);
    for (std::size_t i = 0; i < nesting_; ++i) out_.append(style_.indent, kTemplate);
  }

  // Writes `items` items, each by `append_item(i)`.
  template <class AppendItem>
  void append_all(std::size_t items, std::string_view brackets, const AppendItem& append_item) {
    out_.append(brackets.substr(0, 1), kTemplate);
    ++nesting_;
    for (std::size_t i = 0; i < items; ++i) {
      if (i > 0) out_.append(style_.item_separator, kTemplate);
      begin_line();
      append_item(i);
    }
    --nesting_;
    if (items > 0) begin_line();
    out_.append(brackets.substr(1), kTemplate);
  }

  void append_items(const std::vector<Value>& items) {
    append_all(items.size(), "[]", [&](std::size_t i) { append(items[i]); });
  }

  void append_key(const Value& key) {
    if (key.is_text()) {
      append(key);
      return;
    }
    out_.append("\"", kTemplate);
    append(key);
    out_.append("\"", kTemplate);
  }

  void append_entries(const Dict& dict) {
    heap_.reserve_values(2 * dict.size());
    std::vector<Dict::Entry> entries = dict.entries();
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const Dict::Entry& a, const Dict::Entry& b) {
                         return order(a.key, b.key, heap_) < 0;
                       });
    }
    append_all(entries.size(), "{}", [&](std::size_t i) {
      append_key(entries[i].key);
      out_.append(style_.key_separator, kTemplate);
      append(entries[i].value);
    });
  }

  const JsonLayout& style_;
  Heap& heap_;
  std::size_t nesting_ = 0;
  TextBuilder out_;
};

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(written.ptr - buffer.data()));
  const std::size_t mark = text.find('e');
  int exponent = 0;
  const char* const sign = text.data() + mark + 1;
  std::from_chars(sign + (*sign == '+' ? 1 : 0), text.data() + text.size(), exponent);
  // Python switches to an exponent where the shortest digits would need more zeros.
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02d}", text.substr(0, mark), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  std::array<char, 64> fixed;
  const auto end =
      std::to_chars(fixed.data(), fixed.data() + fixed.size(), value, std::chars_format::fixed);
  std::string shown(fixed.data(), static_cast<std::size_t>(end.ptr - fixed.data()));
  if (shown.find('.') == std::string::npos) shown += ".0";
  return shown;
}

void append_shown(const Value& value, TextBuilder& out) {
  if (value.is_text()) {
    out.append(value.as_text());
  } else if (!value.is_undefined()) {
    append_repr(value, out);
  }
}

Value shown(const Value& value, Heap& heap) {
  if (value.is_text()) return value;
  TextBuilder out(heap);
  append_shown(value, out);
  return std::move(out).value();
}

Value as_json(const Value& value, const JsonLayout& style, Heap& heap) {
  return JsonWriter(style, heap).write(value);
}

}  // namespace pagoda::text::jinja
