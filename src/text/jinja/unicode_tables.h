// Made by tools/make_unicode_tables.py.
#pragma once

#include <array>
#include <cstdint>

namespace pagoda::text::jinja {

// With `stride` 2 only every second character from `first` to `last` is meant.
struct CaseRun {
  char32_t first;
  char32_t last;
  std::uint32_t stride;
  std::int32_t delta;
};

// A character whose other case is two or three characters; 0 stands for none.
struct LongCase {
  char32_t code;
  std::array<char32_t, 3> to;
};

// A class lists in turn where its ranges begin and end.
extern const std::array<char32_t, 1296> kLetters;
extern const std::array<char32_t, 162> kDigits;
extern const std::array<char32_t, 1400> kPrintable;
extern const std::array<char32_t, 66> kDecimalZeros;
extern const std::array<char32_t, 1302> kUpperCase;
extern const std::array<char32_t, 1336> kLowerCase;
extern const std::array<char32_t, 20> kTitleCase;
extern const std::array<char32_t, 854> kCaseIgnorable;
extern const std::array<CaseRun, 194> kToUpper;
extern const std::array<CaseRun, 181> kToLower;
extern const std::array<CaseRun, 196> kToTitle;
extern const std::array<LongCase, 102> kToLongUpper;
extern const std::array<LongCase, 1> kToLongLower;
extern const std::array<LongCase, 48> kToLongTitle;

}  // namespace pagoda::text::jinja
