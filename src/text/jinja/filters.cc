#include "text/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "text/jinja/format.h"
#include "text/jinja/import.h"
#include "text/jinja/numbers.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"
#include "text/jinja/strings.h"

namespace pagoda::text::jinja {
namespace {

const OriginText& text_of(const Value& value, Heap& heap) { return shown(value, heap).as_text(); }

std::string_view separator_at(const std::vector<Value>& separators, std::size_t place) {
  if (separators.size() != 2 || !separators[place].is_text()) {
    fail("tojson: separators are two strings");
  }
  return separators[place].bytes();
}

// Returns a margin: a given text, or that many spaces.
std::string_view margin_of(const Value& width, std::string_view callee, Heap& heap) {
  if (width.is_text()) return width.bytes();
  if (!width.is_integral()) fail(fmt::format("{}: a margin of {}", callee, width.type_name()));
  const auto spaces = static_cast<std::size_t>(std::max<std::int64_t>(width.as_integer(), 0));
  heap.reserve(spaces);
  return heap.keep(OriginText(std::string(spaces, ' '), {})).bytes();
}

Value filter_tojson(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("tojson", arguments,
                             {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonLayout style;
  style.ensure_ascii = bound.flag_or(0, false);
  style.sort_keys = bound.flag_or(3, false);
  if (bound.has(1) && !bound[1].is_none()) {
    style.has_indent = true;
    style.item_separator = ",";
    style.indent = margin_of(bound[1], "tojson", heap);
  }
  if (bound.has(2) && !bound[2].is_none()) {
    const std::vector<Value> separators = items_of(bound[2], heap);
    style.item_separator = separator_at(separators, 0);
    style.key_separator = separator_at(separators, 1);
  }
  return as_json(subject, style, heap);
}

Value filter_from_json(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("from_json", arguments, {});
  if (!subject.is_text()) fail(fmt::format("from_json of a {}", subject.type_name()));
  const auto parsed = parse_json(subject.bytes(), heap);
  if (!parsed.ok())
    fail(fmt::format("from_json: the string is not JSON: {}", parsed.error().message));
  // If anyone other than the template wrote part of the result, all of it has that origin.
  Origin origin;
  for (const OriginText::Run& run : subject.as_text().runs()) {
    if (origin.source == Source::kTemplate) origin = run.origin;
  }
  return import_json(parsed.value(), origin, heap);
}

Value filter_string(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("string", arguments, {});
  return shown(subject, heap);
}

Value filter_trim(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("trim", arguments, {"chars"});
  std::optional<std::string_view> characters;
  if (bound.has(0) && !bound[0].is_none()) characters = bound.text(0).bytes();
  return strip(text_of(subject, heap), Side::kBoth, characters, heap);
}

template <Case kTo>
Value filter_case(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("a filter of case", arguments, {});
  return change_case(text_of(subject, heap), kTo, heap);
}

Value filter_replace(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("replace", arguments, {"old", "new", "count"});
  bound.require(0);
  bound.require(1);
  return replace(text_of(subject, heap), text_of(bound[0], heap), text_of(bound[1], heap),
                 bound.integer_or(2, -1), heap);
}

Value filter_indent(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("indent", arguments, {"width", "first", "blank"});
  const std::string_view margin = bound.has(0) ? margin_of(bound[0], "indent", heap) : "    ";
  if (!subject.is_text()) fail(fmt::format("indent of a {}", subject.type_name()));
  return indent(subject.as_text(), margin, bound.flag_or(1, false), bound.flag_or(2, false), heap);
}

Value filter_format(const Value& subject, const Arguments& arguments, Heap& heap) {
  if (!arguments.named.empty()) fail("format: arguments with names are not supported");
  return format_percent(shown(subject, heap), heap.list(arguments.positional, ListKind::kTuple),
                        heap);
}

Value filter_default(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("default", arguments, {"default_value", "boolean"});
  const bool replaced = subject.is_undefined() || (bound.flag_or(1, false) && !subject.truthy());
  if (!replaced) return subject;
  return bound.has(0) ? bound[0] : heap.text(std::string());
}

Value filter_int(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("int", arguments, {"default"});
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.is_integral()) return Value::integer(subject.as_integer(), subject.origin());
  std::optional<double> number;
  if (subject.is(Kind::kFloat)) number = subject.as_real();
  if (subject.is_text()) {
    heap.read_characters(subject.bytes().size());
    if (const auto whole = parsed_integer(subject.bytes())) return Value::integer(*whole);
    number = parsed_float(subject.bytes());
    if (number && std::isinf(*number)) number.reset();
  }
  if (!number || std::isnan(*number)) return bound.has(0) ? bound[0] : Value::integer(0);
  return Value::integer(truncated(*number));
}

Value filter_float(const Value& subject, const Arguments& arguments, Heap& heap) {
  const BoundArguments bound("float", arguments, {"default"});
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.is_number()) return Value::real(subject.as_real(), subject.origin());
  std::optional<double> number;
  if (subject.is_text()) {
    heap.read_characters(subject.bytes().size());
    number = parsed_float(subject.bytes());
  }
  if (number) return Value::real(*number);
  return bound.has(0) ? bound[0] : Value::real(0);
}

Value filter_abs(const Value& subject, const Arguments& arguments, Heap&) {
  const BoundArguments bound("abs", arguments, {});
  if (!subject.is_number()) fail(fmt::format("abs of a {}", subject.type_name()));
  return std::signbit(subject.as_real()) ? negate(subject) : affirm(subject);
}

constexpr std::array<std::pair<std::string_view, Filter>, 18> kValueFilters = {{
    {"abs", filter_abs},
    {"capitalize", filter_case<Case::kCapitalised>},
    {"d", filter_default},
    {"default", filter_default},
    {"float", filter_float},
    {"format", filter_format},
    {"from_json", filter_from_json},
    {"fromjson", filter_from_json},
    {"indent", filter_indent},
    {"int", filter_int},
    {"lower", filter_case<Case::kLower>},
    {"replace", filter_replace},
    // Nothing is escaped here, so that every text is safe.
    {"safe", filter_string},
    {"string", filter_string},
    {"title", filter_case<Case::kTitleWords>},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"upper", filter_case<Case::kUpper>},
}};

Filter find_filter(std::string_view name) {
  const auto* const found = std::find_if(kValueFilters.begin(), kValueFilters.end(),
                                         [&](const auto& row) { return row.first == name; });
  return found != kValueFilters.end() ? found->second : find_sequence_filter(name);
}

}  // namespace

Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments,
                   Heap& heap) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("unknown filter '{}'", name));
  heap.step();
  if (subject.is_text()) heap.read_bytes(subject.bytes().size());
  return filter(subject, arguments, heap);
}

}  // namespace pagoda::text::jinja
