// Prints values: as {{ }} prints them (Python's str), as they look inside lists (repr), and as
// JSON. Bytes keep their origins; the quotes, commas and escapes around them are the template's,
// except that an escape belongs to whoever wrote the character.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/heap.h"
#include "text/jinja/text_builder.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

void append_shown(const Value& value, TextBuilder& out);
// Returns a text as it is, other values as append_shown prints them.
Value shown(const Value& value, Heap& heap);

struct JsonLayout {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool has_indent = false;
  std::string_view indent;  // for one level
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};

Value as_json(const Value& value, const JsonLayout& style, Heap& heap);

// Returns Python's repr of a float: "1.0", "0.1", "1e+16", "nan".
std::string python_float(double value);

}  // namespace pagoda::text::jinja
