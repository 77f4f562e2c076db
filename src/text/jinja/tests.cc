// The tests that may follow "is".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {
namespace {

using Test = bool (*)(const Value& subject, const Value& argument, Heap& heap);

bool is_iterator(const Value& value) {
  return value.is_list() && value.as_list().kind == ListKind::kIterator;
}

bool is_sequence(const Value& value) {
  return value.is_text() || value.is_list() || value.is_dict() || value.is_undefined();
}

// Returns whether `value` modulo `divisor` is `rest`.
bool leaves(const Value& value, const Value& divisor, std::int64_t rest, Heap& heap) {
  return equal(combine(Operation::kRemainder, value, divisor, heap), Value::integer(rest), heap);
}

// Returns whether there are cased characters and all have the right case.
template <class Right>
bool has_case(const Value& value, const Right& right, Heap& heap) {
  const Value text = shown(value, heap);
  const std::string_view bytes = text.bytes();
  heap.read_characters(bytes.size());
  bool any = false;
  for (std::size_t at = 0; at < bytes.size(); at += character_at(bytes, at).bytes) {
    const char32_t code = character_at(bytes, at).code;
    if (!is_cased(code)) continue;
    if (!right(code)) return false;
    any = true;
  }
  return any;
}

template <Comparison kComparison>
bool test_compare(const Value& subject, const Value& argument, Heap& heap) {
  return compare(kComparison, subject, argument, heap);
}

bool test_boolean(const Value& v, const Value&, Heap&) { return v.is(Kind::kBool); }
bool test_callable(const Value& v, const Value&, Heap&) {
  return v.is(Kind::kMacro) || v.is(Kind::kMethod) || v.is(Kind::kFunction) || v.is_undefined();
}
bool test_defined(const Value& v, const Value&, Heap&) { return !v.is_undefined(); }
bool test_divisible(const Value& v, const Value& by, Heap& heap) { return leaves(v, by, 0, heap); }
bool test_even(const Value& v, const Value&, Heap& heap) {
  return leaves(v, Value::integer(2), 0, heap);
}
bool test_false(const Value& v, const Value&, Heap&) { return v.is(Kind::kBool) && !v.as_bool(); }
bool test_float(const Value& v, const Value&, Heap&) { return v.is(Kind::kFloat); }
bool test_integer(const Value& v, const Value&, Heap&) { return v.is(Kind::kInteger); }
bool test_iterable(const Value& v, const Value&, Heap&) { return is_sequence(v); }
bool test_lower(const Value& v, const Value&, Heap& heap) { return has_case(v, is_lower, heap); }
bool test_mapping(const Value& v, const Value&, Heap&) { return v.is_dict(); }
bool test_none(const Value& v, const Value&, Heap&) { return v.is_none(); }
bool test_number(const Value& v, const Value&, Heap&) { return v.is_number(); }
bool test_odd(const Value& v, const Value&, Heap& heap) {
  return leaves(v, Value::integer(2), 1, heap);
}
bool test_same(const Value& v, const Value& other, Heap&) { return same(v, other); }
bool test_sequence(const Value& v, const Value&, Heap&) {
  return is_sequence(v) && !is_iterator(v);
}
bool test_string(const Value& v, const Value&, Heap&) { return v.is_text(); }
bool test_true(const Value& v, const Value&, Heap&) { return v.is(Kind::kBool) && v.as_bool(); }
bool test_undefined(const Value& v, const Value&, Heap&) { return v.is_undefined(); }
bool test_upper(const Value& v, const Value&, Heap& heap) { return has_case(v, is_upper, heap); }

struct Row {
  std::string_view name;
  Test test;
  std::size_t arguments = 0;
};

constexpr std::array<Row, 36> kTests = {{
    {"!=", test_compare<Comparison::kNotEqual>, 1},
    {"<", test_compare<Comparison::kLess>, 1},
    {"<=", test_compare<Comparison::kLessEqual>, 1},
    {"==", test_compare<Comparison::kEqual>, 1},
    {">", test_compare<Comparison::kGreater>, 1},
    {">=", test_compare<Comparison::kGreaterEqual>, 1},
    {"boolean", test_boolean},
    {"callable", test_callable},
    {"defined", test_defined},
    {"divisibleby", test_divisible, 1},
    {"eq", test_compare<Comparison::kEqual>, 1},
    {"equalto", test_compare<Comparison::kEqual>, 1},
    {"even", test_even},
    {"false", test_false},
    {"float", test_float},
    {"ge", test_compare<Comparison::kGreaterEqual>, 1},
    {"greaterthan", test_compare<Comparison::kGreater>, 1},
    {"gt", test_compare<Comparison::kGreater>, 1},
    {"in", test_compare<Comparison::kIn>, 1},
    {"integer", test_integer},
    {"iterable", test_iterable},
    {"le", test_compare<Comparison::kLessEqual>, 1},
    {"lessthan", test_compare<Comparison::kLess>, 1},
    {"lower", test_lower},
    {"lt", test_compare<Comparison::kLess>, 1},
    {"mapping", test_mapping},
    {"ne", test_compare<Comparison::kNotEqual>, 1},
    {"none", test_none},
    {"number", test_number},
    {"odd", test_odd},
    {"sameas", test_same, 1},
    {"sequence", test_sequence},
    {"string", test_string},
    {"true", test_true},
    {"undefined", test_undefined},
    {"upper", test_upper},
}};

const Row* find_test(std::string_view name) {
  const auto* const found =
      std::find_if(kTests.begin(), kTests.end(), [&](const Row& row) { return row.name == name; });
  return found == kTests.end() ? nullptr : found;
}

}  // namespace

bool apply_test(std::string_view name, const Value& subject, const Arguments& arguments,
                Heap& heap) {
  const Row* const row = find_test(name);
  if (row == nullptr) fail(fmt::format("unknown test '{}'", name));
  heap.step();
  if (arguments.positional.size() != row->arguments || !arguments.named.empty()) {
    fail(fmt::format("the test '{}' takes {} arguments, was given {}", name, row->arguments,
                     arguments.positional.size() + arguments.named.size()));
  }
  return row->test(subject, row->arguments == 0 ? Value() : arguments.positional[0], heap);
}

}  // namespace pagoda::text::jinja
