// + - * / // % ** ~ and the minus sign.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"

namespace pagoda::text::jinja {
namespace {

std::string_view sign_of(Operation operation) {
  switch (operation) {
    case Operation::kAdd:
      return "+";
    case Operation::kSubtract:
      return "-";
    case Operation::kMultiply:
      return "*";
    case Operation::kDivide:
      return "/";
    case Operation::kFloorDivide:
      return "//";
    case Operation::kRemainder:
      return "%";
    case Operation::kPower:
      return "**";
    default:
      return "~";
  }
}

[[noreturn]] void fail_overflow() { fail("a number beyond 64 bits"); }

std::int64_t floor_quotient(std::int64_t left, std::int64_t right) {
  if (right == -1) {
    std::int64_t negated = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, left, &negated)) fail_overflow();
    return negated;
  }
  const std::int64_t quotient = left / right;
  return quotient - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return result;
}

Value combine_integers(Operation operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (operation) {
    case Operation::kAdd:
      overflow = __builtin_add_overflow(left, right, &result);
      break;
    case Operation::kSubtract:
      overflow = __builtin_sub_overflow(left, right, &result);
      break;
    case Operation::kMultiply:
      overflow = __builtin_mul_overflow(left, right, &result);
      break;
    case Operation::kFloorDivide:
      result = floor_quotient(left, right);
      break;
    case Operation::kRemainder:
      result = right == -1 ? 0 : left - right * floor_quotient(left, right);
      break;
    default:
      result = power(left, right);
      break;
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

Value combine_reals(Operation operation, double left, double right) {
  switch (operation) {
    case Operation::kAdd:
      return Value::real(left + right);
    case Operation::kSubtract:
      return Value::real(left - right);
    case Operation::kMultiply:
      return Value::real(left * right);
    case Operation::kDivide:
      return Value::real(left / right);
    case Operation::kFloorDivide:
      return Value::real(std::floor(left / right));
    case Operation::kRemainder: {
      const double rest = std::fmod(left, right);
      return Value::real(rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest);
    }
    default:
      return Value::real(std::pow(left, right));
  }
}

Value combine_numbers(Operation operation, const Value& left, const Value& right) {
  const bool divides = operation == Operation::kDivide || operation == Operation::kFloorDivide ||
                       operation == Operation::kRemainder;
  if (divides && right.as_real() == 0) fail("division by zero");
  const bool integral = left.is_integral() && right.is_integral() &&
                        operation != Operation::kDivide &&
                        !(operation == Operation::kPower && right.as_integer() < 0);
  return integral ? combine_integers(operation, left.as_integer(), right.as_integer())
                  : combine_reals(operation, left.as_real(), right.as_real());
}

Value join_texts(const OriginText& left, const OriginText& right, Heap& heap) {
  OriginText joined = left;
  joined.append(right, 0, right.size());
  return heap.text(std::move(joined));
}

Value join_lists(const List& left, const List& right, Heap& heap) {
  heap.step(left.items.size() + right.items.size());
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return heap.list(std::move(items), left.kind);
}

Value repeat(const Value& value, std::int64_t times, Heap& heap) {
  const std::size_t count = times > 0 ? static_cast<std::size_t>(times) : 0;
  if (value.is_text()) {
    const OriginText& text = value.as_text();
    if (text.empty()) return value;
    if (count > heap.limits().text_bytes / text.size())
      heap.reserve_text(heap.limits().text_bytes + 1);
    OriginText repeated;
    for (std::size_t i = 0; i < count; ++i) repeated.append(text);
    return heap.text(std::move(repeated));
  }
  const List& list = value.as_list();
  std::vector<Value> items;
  for (std::size_t i = 0; i < count && !list.items.empty(); ++i) {
    heap.step(list.items.size());
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return heap.list(std::move(items), list.kind);
}

}  // namespace

Value combine(Operation operation, const Value& left, const Value& right, Heap& heap) {
  heap.step();
  if (operation == Operation::kConcatenate) {
    return join_texts(shown(left, heap).as_text(), shown(right, heap).as_text(), heap);
  }
  if (operation == Operation::kRemainder && left.is_text())
    return format_percent(left, right, heap);
  if (left.is_number() && right.is_number()) return combine_numbers(operation, left, right);
  if (operation == Operation::kAdd) {
    if (left.is_text() && right.is_text()) return join_texts(left.as_text(), right.as_text(), heap);
    if (left.is_list() && right.is_list() && left.as_list().kind == right.as_list().kind) {
      return join_lists(left.as_list(), right.as_list(), heap);
    }
  }
  if (operation == Operation::kMultiply) {
    const auto repeatable = [](const Value& value) { return value.is_text() || value.is_list(); };
    if (repeatable(left) && right.is_integral()) return repeat(left, right.as_integer(), heap);
    if (left.is_integral() && repeatable(right)) return repeat(right, left.as_integer(), heap);
  }
  for (const Value& value : {left, right}) {
    if (value.is_undefined()) fail_undefined(value);
  }
  fail(fmt::format("'{}' between a {} and a {}", sign_of(operation), left.type_name(),
                   right.type_name()));
}

Value negate(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::real(-value.as_real());
  if (!value.is_integral()) fail(fmt::format("'-' before a {}", value.type_name()));
  return combine_integers(Operation::kSubtract, 0, value.as_integer());
}

}  // namespace pagoda::text::jinja
