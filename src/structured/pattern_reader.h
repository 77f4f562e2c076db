// Reads a regular expression: a subset of ECMA 262's that is a regular language and means the same
// in Python's `re`, so that no expression takes long.
//
//   characters, . (no line end), \t \n \r \f \v \0 \xHH \uHHHH \u{H…}, \ before punctuation
//   [a-z] [^a-z], and \d \w \s \D \W \S with the characters that both languages take
//   ( ) (?: ) (?<name> ) (?P<name> ), |
//   * + ? {n} {n,} {n,m}, and their lazy forms, which match the same texts
//   ^ at the beginning and $ at the end of an expression or of one of its outermost alternatives
//
// Everything else is refused with its place: look-around, back references, \b, \p, flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "structured/character_form.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

inline constexpr std::size_t kPatternBytesMax = std::size_t{1} << 16;
inline constexpr std::size_t kGroupDepthMax = 64;

enum class PatternMatch : std::uint8_t {
  kWhole,   // the whole text matches
  kSearch,  // some part of the text matches, as in JSON Schema
};

// The one part of an expression that has no fixed length: a character that repeats. The texts are
// `before`, the character as often as there is room, `behind`.
struct PatternRun {
  GrammarNodeId before = 0;
  GrammarNodeId character = 0;
  GrammarNodeId behind = 0;
  std::uint32_t fixed = 0;  // code points of before and behind together
};

// The grammar of an expression and the least and most code points of texts that match it.
struct Pattern {
  GrammarNodeId node = 0;
  std::uint32_t least = 0;
  std::uint32_t most = 0;  // or kUnbounded
  // Set where the expression has this form, so that it can be combined with other bounds.
  std::optional<PatternRun> run = {};
};

// No text has a character of `left_out`, which is normalised; an error for an expression that
// wants one. `measured`: characters are marked, for GrammarTree::measured().
Result<Pattern> read_pattern(std::string_view pattern, PatternMatch match, CharacterForm form,
                             GrammarTree& tree, const CodePointSet& left_out = {},
                             bool measured = false);

}  // namespace pagoda::structured
