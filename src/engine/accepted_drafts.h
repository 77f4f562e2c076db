// accepted_drafts() says how many tokens of a draft have become output.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/sampled_token.h"

namespace pagoda::engine {

// `samples` and `nonfinite_row` are those of runner.h's Collected for a sample with this draft. A
// draft token is accepted where the row before it sampled that token. Nothing is accepted behind a
// row that is not finite, nor behind the end of a grammar, where nothing was sampled; drafts have
// no token that ends a sequence otherwise.
inline std::uint32_t accepted_drafts(std::span<const TokenId> draft,
                                     std::span<const Result<SampledToken>> samples,
                                     std::uint8_t nonfinite_row) {
  for (std::uint32_t i = 0; i < draft.size(); ++i) {
    const bool is_finite = nonfinite_row == 0 || i + 1 < nonfinite_row;
    if (!is_finite || !samples[i].ok() || samples[i].value().token != draft[i]) return i;
    if (samples[i].value().ends_grammar) return i + 1;
  }
  return static_cast<std::uint32_t>(draft.size());
}

}  // namespace pagoda::engine
