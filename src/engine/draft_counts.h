// DraftCounts count draft tokens: of one sequence in its record, of all in the engine's counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "speculate/options.h"

namespace pagoda::engine {

struct DraftCounts {
  std::uint64_t drafts = 0;
  std::uint64_t tokens = 0;
  std::uint64_t accepted = 0;           // that became output
  std::uint64_t prediction_tokens = 0;  // of drafts from the client's prediction
  std::uint64_t prediction_accepted = 0;

  void add(const DraftCounts& more) {
    drafts += more.drafts;
    tokens += more.tokens;
    accepted += more.accepted;
    prediction_tokens += more.prediction_tokens;
    prediction_accepted += more.prediction_accepted;
  }
};

// [i]: drafts whose token i, counted from 0, was accepted.
using AcceptedByPosition = std::array<std::uint64_t, speculate::kDraftTokensMax>;

}  // namespace pagoda::engine
