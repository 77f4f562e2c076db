// Sampling and scoring by one row of logits in host memory, as runners of every device do it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/runner.h"
#include "engine/sampled_token.h"
#include "engine/sampler.h"

namespace pagoda::engine {

// The rows of a launch whose logits are needed, ascending and each once; replaces `rows`.
void list_logit_rows(const Launch& launch, std::vector<std::uint32_t>& rows);

// Chooses a token by `logits`; the sequence's sampling state counts it.
Result<SampledToken> sample_row(std::span<const float> logits, const LaunchSample& sample,
                                SamplerScratch& scratch);

// The log-probability of a token that is known. Logits that are not finite give NaN: the request
// ends when its own token is chosen.
TokenScore score_row(std::span<const float> logits, const LaunchScore& score,
                     SamplerScratch& scratch);

}  // namespace pagoda::engine
