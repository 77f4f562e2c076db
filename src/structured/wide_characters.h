// The bytes of a character beyond ASCII, as an automaton of few states: an instruction reads any
// such character where an expression leaves out none, or none but the two line separators.
#pragma once

#include <array>
#include <cstdint>

#include "structured/code_point_set.h"

namespace pagoda::structured {

inline constexpr std::uint8_t kWideWhole = 0;    // between two characters
inline constexpr std::uint8_t kWideStates = 10;  // the others are within one
inline constexpr std::uint8_t kWideDead = 0xFF;

// [state][byte]: the next state; ASCII leads nowhere.
using WideCharacters = std::array<std::array<std::uint8_t, 256>, kWideStates>;

// With `separators` U+2028 and U+2029 are among the characters.
const WideCharacters& wide_characters(bool separators);

// Which characters beyond ASCII a normalised set has.
enum class WideSet : std::uint8_t {
  kNone,  // none, or some
  kAll,
  kOther,  // all but the line separators
};
WideSet wide_set(const CodePointSet& set);

}  // namespace pagoda::structured
