// Writes a text under a grammar, byte by byte: wherever it is, it can go on or end.
#pragma once

#include <cstdint>
#include <string>

#include "base/assert.h"
#include "structured/automaton.h"
#include "structured/grammar.h"
#include "structured/matcher.h"

namespace pagoda::structured {

// The choice of bytes is a function of `seed`. Stops after some bytes, or where a limit ends it.
inline void check_grammar(const Grammar& grammar, std::uint64_t seed) {
  constexpr int kBytesMax = 120;
  Automaton automaton(grammar.program(), 16);
  StateId state = automaton.start();
  std::string text;
  for (int i = 0; i < kBytesMax; ++i) {
    automaton.begin_token();
    StateId next = kDeadState;
    const auto first = static_cast<unsigned>(mix_hash(seed, static_cast<std::uint64_t>(i)));
    for (unsigned k = 0; k < 256 && next == kDeadState; ++k) {
      const auto byte = static_cast<std::uint8_t>(first + k);
      next = automaton.step(state, byte);
      if (next != kDeadState) text += static_cast<char>(byte);
    }
    if (automaton.is_exhausted()) return;
    if (next == kDeadState) {
      ASSERT(automaton.accepts(state), "a text that cannot go on is complete");
      ASSERT(matches_text(grammar, text), "and matches as a whole");
      return;
    }
    state = next;
  }
}

}  // namespace pagoda::structured
