// A TurnEstimate says what a request that came now would find in the cache, and how long it would
// wait for its first token.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/tiers/load_record.h"

namespace pagoda::engine {

// TokensInTiers are the tokens of a prompt, behind those in memory, that stores have.
struct TokensInTiers {
  std::uint64_t end = 0;  // of the whole blocks that are in memory or in a store
  std::array<std::uint64_t, kTiersMax> tokens{};  // [store], nearest first
  // [store]: it answers later, so that nobody knows what it has.
  std::array<bool, kTiersMax> answers_later{};
  // Expected time of loading them, or of computing them where that is faster; nothing: not
  // measured yet.
  std::optional<double> seconds = 0;
};

struct TurnEstimate {
  TokensInTiers tiers = {};
  std::uint64_t tokens_to_compute = 0;
  // Prompt tokens of requests that come before it and are not computed yet.
  std::uint64_t tokens_queued = 0;
  std::optional<double> tokens_per_second = {};  // of prompts, measured; nothing: not yet

  // Expected time until the first token; nothing: not measured yet.
  std::optional<double> seconds() const {
    if (!tokens_per_second || !tiers.seconds) return std::nullopt;
    return static_cast<double>(tokens_queued + tokens_to_compute) / *tokens_per_second +
           *tiers.seconds;
  }
};

}  // namespace pagoda::engine
