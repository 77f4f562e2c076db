// How long a decode step takes, with some sequences at some depth.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "bench/bench_engine.h"

namespace pagoda::bench {

// Mean seconds of the steps in which all sequences got a token: from the moment the last of them
// has begun to the end of the first. `times_ns`: of each sequence's tokens, one a step. Nothing
// when there was no such step.
std::optional<double> shared_step_seconds(const std::vector<std::vector<std::int64_t>>& times_ns);

// Waits for all of them: shared_step_seconds() of their tokens.
Result<std::optional<double>> finish_together(BenchEngine& engine,
                                              const std::vector<PendingRequest>& pending);

// Seconds of a step in which each prompt's sequence gets one token. Prompts are computed before, so
// that sequences start together from the cache.
Result<double> decode_step_seconds(BenchEngine& engine,
                                   const std::vector<std::vector<TokenId>>& prompts,
                                   std::uint32_t new_tokens);

// A decode step of several sequences; drafts that are accepted give each of them more than a token.
struct DecodeStep {
  double seconds = 0;
  double tokens_each = 1;
};
// The same as decode_step_seconds() where drafts may be.
Result<DecodeStep> drafted_step(BenchEngine& engine,
                                const std::vector<std::vector<TokenId>>& prompts,
                                std::uint32_t new_tokens);

}  // namespace pagoda::bench
