#include "text/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "text/abbreviated.h"
#include "text/jinja/show.h"

namespace pagoda::text::jinja {
namespace {

Value whole_number(const Value& value) {
  if (!value.is_number()) fail(fmt::format("%d of a {}", value.type_name()));
  if (value.is_integral()) return Value::integer(value.as_integer(), value.origin());
  if (!(std::fabs(value.as_real()) < 9e18)) fail("%d of a number beyond 64 bits");
  return Value::integer(static_cast<std::int64_t>(value.as_real()), value.origin());
}

// Resolves the argument of a pair of braces: the next one, one by number, one by name. Automatic
// and explicit numbers do not mix.
class Fields {
 public:
  Fields(const Arguments& arguments, Heap& heap) : arguments_(arguments), heap_(heap) {}

  const Value& value(std::string_view field) {
    if (field.empty()) {
      counts_ = true;
      return positional(next_++);
    }
    std::size_t place = 0;
    const auto parsed = std::from_chars(field.data(), field.data() + field.size(), place);
    if (parsed.ec != std::errc{} || parsed.ptr != field.data() + field.size()) return named(field);
    has_numbers_ = true;
    return positional(place);
  }

 private:
  const Value& positional(std::size_t place) const {
    if (counts_ && has_numbers_) fail("format: fields with a number beside ones without");
    if (place >= arguments_.positional.size()) fail(fmt::format("format: no argument {}", place));
    return arguments_.positional[place];
  }

  const Value& named(std::string_view field) const {
    heap_.step(arguments_.named.size());
    const auto found = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                    [&](const auto& each) { return each.first == field; });
    if (found == arguments_.named.end()) {
      fail(fmt::format("format: no argument '{}'", abbreviated(field, 100)));
    }
    return found->second;
  }

  const Arguments& arguments_;
  Heap& heap_;
  std::size_t next_ = 0;
  bool counts_ = false;
  bool has_numbers_ = false;
};

}  // namespace

Value format_percent(const Value& pattern, const Value& values, Heap& heap) {
  const bool tuple = values.is_list() && values.as_list().kind == ListKind::kTuple;
  const std::span<const Value> all =
      tuple ? std::span<const Value>(values.as_list().items) : std::span(&values, 1);
  const OriginText& text = pattern.as_text();
  const std::string_view bytes = text.bytes();
  heap.read_characters(bytes.size());
  TextBuilder out(heap);
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
    append_shown(letter == 's' ? value : whole_number(value), out);
  }
  const bool mapping = values.is_dict() || values.is_undefined() ||
                       (values.is_list() && values.as_list().kind == ListKind::kList);
  if (used != all.size() && !mapping) fail("too many values for a format string");
  out.append(text, begin, bytes.size());
  return std::move(out).value();
}

Value format_braces(const Value& pattern, const Arguments& arguments, Heap& heap) {
  const OriginText& text = pattern.as_text();
  const std::string_view bytes = text.bytes();
  heap.read_characters(bytes.size());
  TextBuilder out(heap);
  Fields fields(arguments, heap);
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
    append_shown(fields.value(bytes.substr(brace + 1, close - brace - 1)), out);
    at = close + 1;
  }
  return std::move(out).value();
}

}  // namespace pagoda::text::jinja
