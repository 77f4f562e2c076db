// The bytes of a JSON string after its opening quote, as an automaton of few states: UTF-8 of
// characters that need no escape, escapes (a surrogate comes as a pair alone), the closing quote.
#pragma once

#include <array>
#include <cstdint>

namespace pagoda::structured {

// States of a string's body. kBody is between two characters.
enum StringState : std::uint8_t {
  kBody,
  kEscape,      // after a backslash
  kHex1,        // four digits are missing
  kHex2,        // three digits are missing
  kHex2AfterD,  // three digits are missing, and the first was a D
  kHex3,        // two digits are missing
  kHex4,        // one digit is missing
  kHigh3,       // the same for the first half of a surrogate pair
  kHigh4,
  kLowBackslash,  // the second half must follow
  kLowU,
  kLow1,
  kLow2,
  kTail1,  // one continuation byte is missing
  kTail2,
  kTail3,
  kTailE0,  // the first continuation byte has a range of its own
  kTailED,
  kTailF0,
  kTailF4,
  kStringStates,  // the number of states above
  kClosed,        // the closing quote was read
  kDead,
};

struct StringAutomaton {
  // [state][byte]: the next state.
  std::array<std::array<std::uint8_t, 256>, kStringStates> next;
};

// Returns the one automaton there is.
const StringAutomaton& string_automaton();

// Returns whether a character begins with this byte in state kBody.
constexpr bool begins_character(std::uint8_t state, std::uint8_t byte) {
  return state == kBody && byte != '"';
}

}  // namespace pagoda::structured
