// Implements + - * / // % ** ~ and the signs before a number.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/show.h"
#include "text/jinja/text_builder.h"

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
  return left / right - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

// The remainder has the sign of the divisor.
std::int64_t floor_rest(std::int64_t left, std::int64_t right) {
  const std::int64_t rest = right == -1 ? 0 : left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
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
      result = floor_rest(left, right);
      break;
    default:
      result = power(left, right);
      break;
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

double floor_rest(double left, double right) {
  const double rest = std::fmod(left, right);
  if (rest == 0) return std::copysign(0.0, right);
  return (rest < 0) != (right < 0) ? rest + right : rest;
}

// Computed from the exact remainder, so that 1 // 0.1 is 9 although 1 / 0.1 rounds to 10.
double floor_quotient(double left, double right) {
  const double quotient = (left - floor_rest(left, right)) / right;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double power(double base, double exponent) {
  if (base == 0 && exponent < 0) fail("division by zero");
  if (base < 0 && std::isfinite(base) && exponent - std::trunc(exponent) != 0) {
    fail("a root of a negative number");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) fail_overflow();
  return result;
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
      return Value::real(floor_quotient(left, right));
    case Operation::kRemainder:
      return Value::real(floor_rest(left, right));
    default:
      return Value::real(power(left, right));
  }
}

// Returns whether a float represents the integer exactly.
bool is_exact(std::int64_t integer) {
  constexpr std::int64_t kExactMax = std::int64_t{1} << 53;
  return integer >= -kExactMax && integer <= kExactMax;
}

Value combine_numbers(Operation operation, const Value& left, const Value& right) {
  const bool divides = operation == Operation::kDivide || operation == Operation::kFloorDivide ||
                       operation == Operation::kRemainder;
  if (divides && right.as_real() == 0) fail("division by zero");
  if (operation == Operation::kDivide) {
    for (const Value& value : {left, right}) {
      if (value.is_integral() && !is_exact(value.as_integer())) {
        fail("an integer beyond 53 bits in a division");
      }
    }
  }
  const bool integral = left.is_integral() && right.is_integral() &&
                        operation != Operation::kDivide &&
                        !(operation == Operation::kPower && right.as_integer() < 0);
  return integral ? combine_integers(operation, left.as_integer(), right.as_integer())
                  : combine_reals(operation, left.as_real(), right.as_real());
}

Value join_texts(const OriginText& left, const OriginText& right, Heap& heap) {
  TextBuilder joined(heap);
  joined.append(left);
  joined.append(right);
  return std::move(joined).value();
}

Value join_lists(const List& left, const List& right, Heap& heap) {
  heap.reserve_values(left.items.size() + right.items.size());
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return heap.list(std::move(items), left.kind);
}

Value repeat_text(const OriginText& text, std::size_t times, Heap& heap) {
  TextBuilder repeated(heap);
  if (text.empty()) return std::move(repeated).value();
  if (times > heap.limits().bytes / text.size()) heap.reserve(heap.limits().bytes + 1);
  heap.read_characters(times * text.size());
  for (std::size_t i = 0; i < times; ++i) repeated.append(text);
  return std::move(repeated).value();
}

Value repeat_list(const List& list, std::size_t times, Heap& heap) {
  std::vector<Value> items;
  for (std::size_t i = 0; i < times && !list.items.empty(); ++i) {
    heap.reserve_values(list.items.size());
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return heap.list(std::move(items), list.kind);
}

Value repeat(const Value& value, std::int64_t times, Heap& heap) {
  const std::size_t count = times > 0 ? static_cast<std::size_t>(times) : 0;
  return value.is_text() ? repeat_text(value.as_text(), count, heap)
                         : repeat_list(value.as_list(), count, heap);
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

Value affirm(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::real(value.as_real());
  if (!value.is_integral()) fail(fmt::format("'+' before a {}", value.type_name()));
  return Value::integer(value.as_integer());
}

Value negate(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::real(-value.as_real());
  if (!value.is_integral()) fail(fmt::format("'-' before a {}", value.type_name()));
  return combine_integers(Operation::kSubtract, 0, value.as_integer());
}

}  // namespace pagoda::text::jinja
