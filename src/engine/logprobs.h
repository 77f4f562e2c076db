// Computes log-probabilities of tokens from the model's raw logits: before penalties, bias and
// temperature (vLLM's raw_logprobs). Output tokens and prompt tokens are treated alike.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/sampler_scratch.h"
#include "engine/token_logprob.h"

namespace pagoda::engine {

struct Logprobs {
  TokenLogprob chosen;
  std::span<const TokenLogprob> top;  // by rank; lives in the scratch until its next use
};

// log softmax = logit - best - log(sum): exponentials add up by 8-lane reduction within a block of
// kLogitBlock tokens, blocks left to right in double. An error when a logit is not finite.
Result<Logprobs> find_logprobs(std::span<const float> logits, TokenId chosen,
                               std::uint32_t top_count, SamplerScratch& scratch,
                               std::uint64_t position);

}  // namespace pagoda::engine
