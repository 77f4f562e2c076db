// Grammars of JSON numbers within bounds.
//
// Integers are those of 64 bits with a sign (but for the least one), multiples have at most 18
// digits; other numbers have at most 18 before and 17 behind the point, and an exponent of at most
// two digits where they have no bounds: a model cannot write digits for ever, and every client can
// hold the value. Beside a bound that is excluded a number has so few digits that it is not rounded
// to the bound.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "structured/decimal.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

struct NumberBound {
  Decimal value;
  bool excluded = false;
};

struct NumberBounds {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
  std::optional<Decimal> multiple_of;

  bool empty() const { return !low && !high && !multiple_of; }
};

// Keeps the narrower one of two bounds.
void narrow_low(std::optional<NumberBound>& low, const NumberBound& other);
void narrow_high(std::optional<NumberBound>& high, const NumberBound& other);

// Whether a number is within the bounds and a multiple. Nothing where that cannot be told.
std::optional<bool> fits(const Decimal& number, const NumberBounds& bounds);

inline constexpr std::int64_t kMultiplesListedMax = 1000;

// An error for a multiple_of that cannot be written as a grammar, and for integers out of reach.
Result<GrammarNodeId> integer_node(GrammarTree& tree, const NumberBounds& bounds);
Result<GrammarNodeId> number_node(GrammarTree& tree, const NumberBounds& bounds);

}  // namespace pagoda::structured
