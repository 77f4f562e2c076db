#include "text/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "text/jinja/show.h"

namespace pagoda::text::jinja {
namespace {

Value whole_number(const Value& value) {
  if (!value.is_number()) fail(fmt::format("%d of a {}", value.type_name()));
  if (value.is_integral()) return Value::integer(value.as_integer(), value.origin());
  if (!(std::fabs(value.as_real()) < 9e18)) fail("%d of a number beyond 64 bits");
  return Value::integer(static_cast<std::int64_t>(value.as_real()), value.origin());
}

const Value& field_value(std::string_view field, const Arguments& arguments, std::size_t& next) {
  std::size_t place = next;
  if (field.empty()) {
    ++next;
  } else {
    const auto parsed = std::from_chars(field.data(), field.data() + field.size(), place);
    if (parsed.ec != std::errc{} || parsed.ptr != field.data() + field.size()) {
      const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                      [&](const auto& each) { return each.first == field; });
      if (named == arguments.named.end()) fail(fmt::format("format: no argument '{}'", field));
      return named->second;
    }
  }
  if (place >= arguments.positional.size()) fail(fmt::format("format: no argument {}", place));
  return arguments.positional[place];
}

}  // namespace

Value format_percent(const Value& pattern, const Value& values, Heap& heap) {
  const bool tuple = values.is_list() && values.as_list().kind == ListKind::kTuple;
  const std::vector<Value> all = tuple ? values.as_list().items : std::vector<Value>{values};
  const OriginText& text = pattern.as_text();
  const std::string_view bytes = text.bytes();
  OriginText out;
  std::size_t used = 0;
  std::size_t begin = 0;
  while (true) {
    const std::size_t sign = bytes.find('%', begin);
    if (sign == std::string_view::npos) break;
    out.append(text, begin, sign);
    const char letter = sign + 1 < bytes.size() ? bytes[sign + 1] : '\0';
    begin = sign + 2;
    if (letter == '%') {
      out.append("%", text.origin_at(sign));
      continue;
    }
    if (letter != 's' && letter != 'd' && letter != 'i') fail("only %s, %d and %% are supported");
    if (used == all.size()) fail("not enough values for a format string");
    const Value& value = all[used++];
    append_shown(letter == 's' ? value : whole_number(value), heap, out);
  }
  if (used != all.size() && tuple) fail("too many values for a format string");
  out.append(text, begin, bytes.size());
  return heap.text(std::move(out));
}

Value format_braces(const Value& pattern, const Arguments& arguments, Heap& heap) {
  const OriginText& text = pattern.as_text();
  const std::string_view bytes = text.bytes();
  OriginText out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(text, at, brace);
    if (brace == bytes.size()) break;
    if (bytes.substr(brace).starts_with("{{") || bytes.substr(brace).starts_with("}}")) {
      out.append(text, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const std::size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string_view::npos) fail("format: a single brace");
    append_shown(field_value(bytes.substr(brace + 1, close - brace - 1), arguments, next), heap,
                 out);
    at = close + 1;
  }
  return heap.text(std::move(out));
}

}  // namespace pagoda::text::jinja
