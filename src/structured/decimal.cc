#include "structured/decimal.h"

#include <algorithm>
#include <cstdlib>

namespace pagoda::structured {
namespace {

constexpr std::size_t kDigitsMax = 40;

int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int order = a.whole.compare(b.whole); order != 0) return order;
  return a.fraction.compare(b.fraction);
}

}  // namespace

std::optional<Decimal> decimal_of(const nlohmann::ordered_json& number) {
  std::string text = number.dump();
  Decimal decimal;
  if (text.starts_with('-')) {
    decimal.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const std::size_t at = text.find_first_of("eE"); at != std::string::npos) {
    exponent = std::atoi(text.c_str() + at + 1);
    text.erase(at);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  decimal.whole = text.substr(0, point);
  if (point < text.size()) decimal.fraction = text.substr(point + 1);
  if (std::abs(exponent) > static_cast<int>(kDigitsMax)) return std::nullopt;
  for (; exponent > 0; --exponent) {
    const bool has_digit = !decimal.fraction.empty();
    decimal.whole += has_digit ? decimal.fraction.front() : '0';
    if (has_digit) decimal.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    const bool has_digit = !decimal.whole.empty();
    decimal.fraction.insert(decimal.fraction.begin(), has_digit ? decimal.whole.back() : '0');
    if (has_digit) decimal.whole.pop_back();
  }
  decimal.whole.erase(0, std::min(decimal.whole.find_first_not_of('0'), decimal.whole.size()));
  const std::size_t last = decimal.fraction.find_last_not_of('0');
  decimal.fraction.resize(last == std::string::npos ? 0 : last + 1);
  if (decimal.whole.size() > kDigitsMax || decimal.fraction.size() > kDigitsMax) {
    return std::nullopt;
  }
  if (decimal.is_zero()) decimal.negative = false;
  return decimal;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

std::optional<bool> is_multiple(const Decimal& decimal, const Decimal& unit) {
  // Both as integers, in units of the last digit of either.
  const std::size_t places = std::max(decimal.fraction.size(), unit.fraction.size());
  const auto digits = [places](const Decimal& of) {
    return of.whole + of.fraction + std::string(places - of.fraction.size(), '0');
  };
  std::string divisor_digits = digits(unit);
  divisor_digits.erase(0, divisor_digits.find_first_not_of('0'));
  if (divisor_digits.size() > 18) return std::nullopt;
  const std::uint64_t divisor = std::stoull(divisor_digits);
  std::uint64_t remainder = 0;
  for (const char digit : digits(decimal)) {
    remainder = (remainder * 10 + static_cast<std::uint64_t>(digit - '0')) % divisor;
  }
  return remainder == 0;
}

std::optional<std::int64_t> to_integer(const Decimal& decimal) {
  if (!decimal.is_integer() || decimal.whole.size() > 18) return std::nullopt;
  const std::int64_t value = decimal.whole.empty() ? 0 : std::stoll(decimal.whole);
  return decimal.negative ? -value : value;
}

}  // namespace pagoda::structured
