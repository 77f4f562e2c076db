// Samples and scores by rows of logits in host memory; runners of every device use it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/runner.h"
#include "engine/sampled_token.h"
#include "engine/sampler.h"

namespace pagoda::engine {

// Sets `rows` to the rows of a launch whose logits are needed, ascending, each once.
void list_logit_rows(const Launch& launch, std::vector<std::uint32_t>& rows);

// Samples a token by `logits`; the sequence's sampling state counts it.
Result<SampledToken> sample_row(std::span<const float> logits, const LaunchSample& sample,
                                SamplerScratch& scratch);

// Returns the log-probability of a known token. Logits that are not finite give NaN: the request
// ends when its own token is sampled.
TokenScore score_row(std::span<const float> logits, const LaunchScore& score,
                     SamplerScratch& scratch);

}  // namespace pagoda::engine
