// SpeculationOptions say how draft tokens are found and how many a step may have. No answer depends
// on them.
#pragma once

#include <cstdint>
#include <string>

#include "speculate/method.h"

namespace pagoda::speculate {

// A sequence has at most so many draft tokens in a step, whatever the options say.
inline constexpr std::uint32_t kDraftTokensMax = 63;

struct SpeculationOptions {
  MethodSet methods = {};         // none: nothing is drafted
  std::uint32_t tokens_max = 24;  // draft tokens of a sequence in a step, up to kDraftTokensMax
  // False: a draft has as many tokens as it may have, whatever they cost.
  bool weighs_costs = true;
  // kNgram looks for so many last tokens, the most first.
  std::uint32_t lookup_min = 5;
  std::uint32_t lookup_max = 5;
  // kSuffix compares so many last tokens; a draft has up to factor times as many tokens as
  // were equal, and ends where its estimated probability falls below the least one.
  std::uint32_t suffix_depth = 24;
  double suffix_factor = 1.0;
  double suffix_probability_min = 0.1;
  std::uint32_t suffix_requests = 10'000;  // past outputs of a scope that are kept; 0: none
  std::string draft_model = {};            // of kDraftModel: a file, a folder or a name
};

}  // namespace pagoda::speculate
