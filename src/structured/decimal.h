// Decimal is a number of a JSON schema as its digits: bounds are compared as they are written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace pagoda::structured {

struct Decimal {
  bool negative = false;  // never of zero
  std::string whole;      // without leading zeros; empty: 0
  std::string fraction;   // without trailing zeros

  bool is_zero() const { return whole.empty() && fraction.empty(); }
  bool is_integer() const { return fraction.empty(); }
};

// Nothing for numbers of more than 40 digits before or behind the point.
std::optional<Decimal> decimal_of(const nlohmann::ordered_json& number);

// Returns below 0 for a < b, 0 for equal numbers, above 0 for a > b.
int compare(const Decimal& a, const Decimal& b);

// Whether `decimal` is a multiple of `unit`, which is above 0. Nothing where the unit has more than
// 18 digits, counted from its first one to the last one of either number.
std::optional<bool> is_multiple(const Decimal& decimal, const Decimal& unit);

// Returns the value of an integer of at most 18 digits.
std::optional<std::int64_t> to_integer(const Decimal& decimal);

}  // namespace pagoda::structured
