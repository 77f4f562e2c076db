#include "structured/number_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "structured/character_form.h"
#include "structured/pattern_reader.h"

namespace pagoda::structured {
namespace {

constexpr std::uint32_t kWholeDigitsMax = 18;
constexpr std::uint32_t kFractionDigitsMax = 17;
constexpr std::int64_t kWholeMax = 999'999'999'999'999'999;
constexpr std::int64_t kIntegerMax = std::numeric_limits<std::int64_t>::max();
// Numbers of so many digits that differ are different doubles.
constexpr std::uint32_t kExactDigits = 15;

// Digits writes nodes for ranges of digit strings.
class Digits {
 public:
  explicit Digits(GrammarTree& tree) : tree_(tree) {}

  GrammarNodeId digit(char first, char last) {
    if (first > last) return tree_.never();
    return tree_.code_points(
        CodePointSet::of({{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)}}));
  }
  GrammarNodeId any(std::uint32_t least, std::uint32_t most) {
    return tree_.repeat(digit('0', '9'), least, most);
  }
  GrammarNodeId literal(char c) { return tree_.literal(std::string_view(&c, 1)); }

  // Strings of as many digits as `low` and `high`, which are as long, from one to the other.
  GrammarNodeId between(std::string_view low, std::string_view high) {
    if (low.empty()) return tree_.empty();
    const auto count = static_cast<std::uint32_t>(low.size());
    const bool is_all = low.find_first_not_of('0') == std::string_view::npos &&
                        high.find_first_not_of('9') == std::string_view::npos;
    if (is_all) return any(count, count);
    if (low[0] == high[0]) {
      return tree_.sequence({literal(low[0]), between(low.substr(1), high.substr(1))});
    }
    const std::uint32_t rest = count - 1;
    const auto next = [](char c, int by) { return static_cast<char>(c + by); };
    return tree_.alternatives(
        {tree_.sequence({literal(low[0]), between(low.substr(1), std::string(rest, '9'))}),
         tree_.sequence({digit(next(low[0], 1), next(high[0], -1)), any(rest, rest)}),
         tree_.sequence({literal(high[0]), between(std::string(rest, '0'), high.substr(1))})});
  }

  // Integers from 0 on, without leading zeros.
  GrammarNodeId integers(std::int64_t low, std::int64_t high) {
    if (low > high) return tree_.never();
    std::vector<GrammarNodeId> branches;
    const std::string last = std::to_string(high);
    while (true) {
      const std::string first = std::to_string(low);
      const std::size_t length = first.size();
      if (length == last.size()) {
        branches.push_back(between(first, last));
        break;
      }
      branches.push_back(between(first, std::string(length, '9')));
      low = std::stoll("1" + std::string(length, '0'));
    }
    return tree_.alternatives(branches);
  }

 private:
  GrammarTree& tree_;
};

// Fractions writes nodes for the digits behind a point: `left` is how many may follow, and one must
// where `first` says that none is there yet. Bounds have no trailing zeros, so that what is left of
// one is above 0.
class Fractions {
 public:
  explicit Fractions(GrammarTree& tree) : tree_(tree), digits_(tree) {}

  GrammarNodeId any(std::uint32_t left, bool first = false) {
    return digits_.any(first ? 1 : 0, left);
  }

  GrammarNodeId at_least(std::string_view bound, bool excluded, std::uint32_t left,
                         bool first = false) {
    if (bound.empty()) return excluded ? above_zero(left) : any(left, first);
    if (left == 0) return tree_.never();
    return tree_.alternatives({tree_.sequence({digits_.digit(up(bound[0]), '9'), any(left - 1)}),
                               tree_.sequence({digits_.literal(bound[0]),
                                               at_least(bound.substr(1), excluded, left - 1)})});
  }

  GrammarNodeId at_most(std::string_view bound, bool excluded, std::uint32_t left,
                        bool first = false) {
    if (bound.empty()) return excluded ? tree_.never() : zeros(left, first);
    if (left == 0) return tree_.empty();
    return tree_.alternatives({first ? tree_.never() : tree_.empty(),
                               tree_.sequence({digits_.digit('0', down(bound[0])), any(left - 1)}),
                               tree_.sequence({digits_.literal(bound[0]),
                                               at_most(bound.substr(1), excluded, left - 1)})});
  }

  // `low` is not above `high`.
  GrammarNodeId between(std::string_view low, bool low_excluded, std::string_view high,
                        bool high_excluded, std::uint32_t left, bool first = false) {
    if (low.empty() && !low_excluded) return at_most(high, high_excluded, left, first);
    if (high.empty() || left == 0) return tree_.never();
    const char digit = low.empty() ? '0' : low[0];
    const std::string_view low_rest = low.empty() ? low : low.substr(1);
    if (digit == high[0]) {
      return tree_.sequence({digits_.literal(digit), between(low_rest, low_excluded, high.substr(1),
                                                             high_excluded, left - 1)});
    }
    return tree_.alternatives(
        {tree_.sequence({digits_.literal(digit), at_least(low_rest, low_excluded, left - 1)}),
         tree_.sequence({digits_.digit(up(digit), down(high[0])), any(left - 1)}),
         tree_.sequence(
             {digits_.literal(high[0]), at_most(high.substr(1), high_excluded, left - 1)})});
  }

 private:
  static char up(char digit) { return static_cast<char>(digit + 1); }
  static char down(char digit) { return static_cast<char>(digit - 1); }

  GrammarNodeId zeros(std::uint32_t left, bool first) {
    return tree_.repeat(digits_.literal('0'), first ? 1 : 0, left);
  }
  GrammarNodeId above_zero(std::uint32_t left) {
    if (left == 0) return tree_.never();
    return tree_.alternatives({tree_.sequence({digits_.digit('1', '9'), any(left - 1)}),
                               tree_.sequence({digits_.literal('0'), above_zero(left - 1)})});
  }

  GrammarTree& tree_;
  Digits digits_;
};

// A point and digits, or neither where `none` says that 0 fits.
GrammarNodeId with_point(GrammarTree& tree, GrammarNodeId digits, bool none) {
  const GrammarNodeId fraction = tree.sequence({tree.literal("."), digits});
  return none ? tree.optional(fraction) : fraction;
}

std::int64_t whole_of(const Decimal& decimal) {
  if (decimal.whole.size() > kWholeDigitsMax) return kWholeMax;
  return decimal.whole.empty() ? 0 : std::stoll(decimal.whole);
}

// Numbers from 0 on; a bound that is absent is 0, or the largest number there is.
GrammarNodeId magnitudes(GrammarTree& tree, const std::optional<NumberBound>& low,
                         const std::optional<NumberBound>& high, std::uint32_t fraction_digits) {
  Fractions fractions(tree);
  Digits digits(tree);
  const NumberBound least = low.value_or(NumberBound{});
  const std::int64_t first = whole_of(least.value);
  const std::int64_t last = high ? whole_of(high->value) : kWholeMax;
  const bool fits_at_first = least.value.fraction.empty() && !least.excluded;
  const auto whole = [&](std::int64_t value) { return tree.literal(std::to_string(value)); };
  if (least.value.whole.size() > kWholeDigitsMax || first > last) return tree.never();
  const bool high_is_far = !high || high->value.whole.size() > kWholeDigitsMax;
  if (!high_is_far && first == last) {
    const GrammarNodeId inner =
        fractions.between(least.value.fraction, least.excluded, high->value.fraction,
                          high->excluded, fraction_digits, true);
    const bool none = fits_at_first && !(high->value.fraction.empty() && high->excluded);
    return tree.sequence({whole(first), with_point(tree, inner, none)});
  }
  std::vector<GrammarNodeId> branches = {tree.sequence(
      {whole(first),
       with_point(tree,
                  fractions.at_least(least.value.fraction, least.excluded, fraction_digits, true),
                  fits_at_first)})};
  const GrammarNodeId any_fraction = with_point(tree, fractions.any(fraction_digits, true), true);
  branches.push_back(
      tree.sequence({digits.integers(first + 1, high_is_far ? last : last - 1), any_fraction}));
  if (!high_is_far) {
    const bool none = !(high->value.fraction.empty() && high->excluded);
    branches.push_back(tree.sequence(
        {whole(last),
         with_point(tree,
                    fractions.at_most(high->value.fraction, high->excluded, fraction_digits, true),
                    none)}));
  }
  return tree.alternatives(branches);
}

std::optional<NumberBound> negated(const std::optional<NumberBound>& bound) {
  if (!bound) return std::nullopt;
  NumberBound other = *bound;
  if (!other.value.is_zero()) other.value.negative = !other.value.negative;
  return other;
}

GrammarNodeId bounded_number(GrammarTree& tree, const NumberBounds& bounds,
                             std::uint32_t fraction) {
  if (bounds.low && bounds.high && compare(bounds.low->value, bounds.high->value) > 0) {
    return tree.never();
  }
  const auto is_negative = [](const std::optional<NumberBound>& bound) {
    return bound && bound->value.negative;
  };
  std::vector<GrammarNodeId> branches;
  if (!is_negative(bounds.high)) {
    const auto low = is_negative(bounds.low) ? std::nullopt : bounds.low;
    branches.push_back(magnitudes(tree, low, bounds.high, fraction));
  }
  const bool has_negatives = !bounds.low || bounds.low->value.negative;
  if (has_negatives) {
    // -0 is 0: it is written without its sign.
    const std::optional<NumberBound> zero = NumberBound{{}, true};
    const auto low = is_negative(bounds.high) ? negated(bounds.high) : zero;
    branches.push_back(
        tree.sequence({tree.literal("-"), magnitudes(tree, low, negated(bounds.low), fraction)}));
  }
  return tree.alternatives(branches);
}

// The integers that the bounds leave.
struct IntegerRange {
  std::int64_t low = -kIntegerMax;
  std::int64_t high = kIntegerMax;
};

// The least integer of a lower bound's magnitude or above; nothing beyond kIntegerMax.
std::optional<std::int64_t> magnitude(const Decimal& decimal, bool next) {
  const std::string last = std::to_string(kIntegerMax);
  const bool fits = decimal.whole.size() < last.size() ||
                    (decimal.whole.size() == last.size() && decimal.whole <= last);
  if (!fits) return std::nullopt;
  const std::int64_t whole = decimal.whole.empty() ? 0 : std::stoll(decimal.whole);
  if (!next) return whole;
  if (whole == kIntegerMax) return std::nullopt;
  return whole + 1;
}

Result<IntegerRange> integer_range(const NumberBounds& bounds) {
  const Error out_of_reach = {ErrorCode::kUnsupported,
                              fmt::format("integers are those from -{0} to {0}", kIntegerMax)};
  IntegerRange range;
  if (bounds.low) {
    const auto& [value, excluded] = *bounds.low;
    // Away from 0 to the next one above, or towards it.
    const auto size = magnitude(value, !value.negative && (excluded || !value.is_integer()));
    if (!size && !value.negative) return out_of_reach;
    if (size && !value.negative) range.low = *size;
    if (size && value.negative) range.low = -*size + (excluded && value.is_integer() ? 1 : 0);
  }
  if (bounds.high) {
    const auto& [value, excluded] = *bounds.high;
    const auto size = magnitude(value, value.negative && (excluded || !value.is_integer()));
    if (!size && value.negative) return out_of_reach;
    if (size && value.negative) range.high = -*size;
    if (size && !value.negative) range.high = *size - (excluded && value.is_integer() ? 1 : 0);
  }
  return range;
}

// Bounds that are excluded are not met after rounding.
std::uint32_t fraction_digits_beside(const std::optional<NumberBound>& bound, std::uint32_t most) {
  if (!bound || !bound->excluded) return most;
  const auto whole = static_cast<std::uint32_t>(bound->value.whole.size());
  return std::min(most, whole < kExactDigits ? kExactDigits - whole : 0);
}

GrammarNodeId integers(GrammarTree& tree, const IntegerRange& range) {
  Digits digits(tree);
  const GrammarNodeId negative =
      tree.sequence({tree.literal("-"), digits.integers(std::max<std::int64_t>(1, -range.high),
                                                        -std::min<std::int64_t>(0, range.low))});
  const GrammarNodeId positive = digits.integers(std::max<std::int64_t>(0, range.low), range.high);
  return tree.alternatives({range.low < 0 ? negative : tree.never(), positive});
}

bool is_zero(const std::optional<NumberBound>& bound) { return bound && bound->value.is_zero(); }

// Bounds say at most on which side of 0.
GrammarNodeId multiples(GrammarTree& tree, std::uint32_t divisor, std::uint32_t places,
                        const NumberBounds& bounds) {
  const bool excludes_zero =
      (bounds.low && bounds.low->excluded) || (bounds.high && bounds.high->excluded);
  const GrammarNodeId size = tree.multiple(divisor, places);
  const GrammarNodeId below = tree.sequence({tree.literal("-"), size});
  return tree.alternatives({excludes_zero ? tree.never() : tree.literal("0"),
                            bounds.low ? tree.never() : below, bounds.high ? tree.never() : size});
}

std::int64_t divided_up(std::int64_t value, std::int64_t divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}
std::int64_t divided_down(std::int64_t value, std::int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

// A number in units of the last of so many places behind the point.
std::string with_places(std::int64_t value, std::uint32_t places) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  if (places > 0) {
    digits.insert(digits.size() - places, ".");
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
  }
  return (value < 0 ? "-" : "") + digits;
}

Decimal moved_left(Decimal decimal, std::uint32_t places) {
  for (std::uint32_t i = 0; i < places; ++i) {
    const char digit = decimal.fraction.empty() ? '0' : decimal.fraction.front();
    if (!decimal.fraction.empty()) decimal.fraction.erase(0, 1);
    if (!decimal.whole.empty() || digit != '0') decimal.whole += digit;
  }
  return decimal;
}

std::optional<NumberBound> moved_left(std::optional<NumberBound> bound, std::uint32_t places) {
  if (bound) bound->value = moved_left(bound->value, places);
  return bound;
}

// Multiples of a number with `places` digits behind the point, which are counted in units of the
// last.
Result<GrammarNodeId> listed_multiples(GrammarTree& tree, const NumberBounds& given,
                                       std::uint32_t places) {
  const std::optional<std::int64_t> divisor = to_integer(moved_left(*given.multiple_of, places));
  if (!divisor || *divisor <= 0) {
    return Error{ErrorCode::kUnsupported,
                 "multipleOf: it must have at most 18 digits and be above 0"};
  }
  const NumberBounds bounds = {moved_left(given.low, places), moved_left(given.high, places), {}};
  ASSIGN_OR_RETURN(const IntegerRange range, integer_range(bounds));
  if (*divisor == 1 && places == 0) return integers(tree, range);
  const std::int64_t first = divided_up(range.low, *divisor);
  const std::int64_t last = divided_down(range.high, *divisor);
  if (first > last) return tree.never();
  if (last - first < kMultiplesListedMax) {
    std::vector<std::string> texts;
    for (std::int64_t i = first; i <= last; ++i) texts.push_back(with_places(i * *divisor, places));
    return tree.choice(std::move(texts));
  }
  const bool is_one_side = (!bounds.low || (is_zero(bounds.low) && !bounds.high)) &&
                           (!bounds.high || is_zero(bounds.high));
  if (!is_one_side) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("multipleOf: with bounds, except one that is 0, more than {} multiples "
                    "are not supported",
                    kMultiplesListedMax)};
  }
  if (*divisor > kMultipleOfMax) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("multipleOf: {} is above {}", with_places(*divisor, places),
                             with_places(kMultipleOfMax, places))};
  }
  return multiples(tree, static_cast<std::uint32_t>(*divisor), places, bounds);
}

Result<GrammarNodeId> integer_multiples(GrammarTree& tree, const NumberBounds& bounds) {
  if (bounds.multiple_of->is_integer()) return listed_multiples(tree, bounds, 0);
  return Error{ErrorCode::kUnsupported, "multipleOf: of integers it must be an integer"};
}

}  // namespace

void narrow_low(std::optional<NumberBound>& low, const NumberBound& other) {
  const int order = low ? compare(other.value, low->value) : 1;
  if (order > 0 || (order == 0 && other.excluded)) low = other;
}

void narrow_high(std::optional<NumberBound>& high, const NumberBound& other) {
  const int order = high ? compare(other.value, high->value) : -1;
  if (order < 0 || (order == 0 && other.excluded)) high = other;
}

std::optional<bool> fits(const Decimal& number, const NumberBounds& bounds) {
  if (bounds.low) {
    const int order = compare(number, bounds.low->value);
    if (order < 0 || (order == 0 && bounds.low->excluded)) return false;
  }
  if (bounds.high) {
    const int order = compare(number, bounds.high->value);
    if (order > 0 || (order == 0 && bounds.high->excluded)) return false;
  }
  return bounds.multiple_of ? is_multiple(number, *bounds.multiple_of) : true;
}

Result<GrammarNodeId> integer_node(GrammarTree& tree, const NumberBounds& bounds) {
  if (bounds.multiple_of) return integer_multiples(tree, bounds);
  if (!bounds.empty()) {
    ASSIGN_OR_RETURN(const IntegerRange range, integer_range(bounds));
    return integers(tree, range);
  }
  ASSIGN_OR_RETURN(
      const Pattern pattern,
      read_pattern("-?(0|[1-9][0-9]{0,17})", PatternMatch::kWhole, CharacterForm::kPlain, tree));
  // Integers of 19 digits.
  const GrammarNodeId longest = tree.sequence(
      {tree.optional(tree.literal("-")), Digits(tree).integers(kWholeMax + 1, kIntegerMax)});
  return tree.alternatives({pattern.node, longest});
}

Result<GrammarNodeId> number_node(GrammarTree& tree, const NumberBounds& bounds) {
  if (bounds.empty()) {
    ASSIGN_OR_RETURN(const Pattern pattern,
                     read_pattern("-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,17})?([eE][-+]?[0-9]{1,2})?",
                                  PatternMatch::kWhole, CharacterForm::kPlain, tree));
    return pattern.node;
  }
  std::uint32_t fraction_digits =
      fraction_digits_beside(bounds.high, fraction_digits_beside(bounds.low, kFractionDigitsMax));
  if (bounds.multiple_of) {
    const Decimal& unit = *bounds.multiple_of;
    if (unit.is_integer()) return integer_multiples(tree, bounds);
    const bool is_power_of_ten = unit.whole.empty() &&
                                 unit.fraction.find_first_not_of('0') == unit.fraction.size() - 1 &&
                                 unit.fraction.back() == '1' && !unit.negative;
    if (!is_power_of_ten && unit.fraction.size() <= kMultiplePlacesMax) {
      return listed_multiples(tree, bounds, static_cast<std::uint32_t>(unit.fraction.size()));
    }
    if (!is_power_of_ten || unit.fraction.size() > kFractionDigitsMax) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("multipleOf: a fraction must be a power of ten, such as 0.01, or "
                               "have at most {} digits behind the point",
                               kMultiplePlacesMax)};
    }
    fraction_digits = std::min(fraction_digits, static_cast<std::uint32_t>(unit.fraction.size()));
  }
  return bounded_number(tree, bounds, fraction_digits);
}

}  // namespace pagoda::structured
