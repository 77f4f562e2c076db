// What is asked of the engine: tokens in, and how tokens out are chosen and bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/end_rule.h"
#include "engine/sampling_options.h"
#include "engine/tenant.h"

namespace pagoda::engine {

using RequestId = StrongId<struct RequestTag, std::uint64_t>;

struct Request {
  std::vector<TokenId> prompt;
  SamplingOptions sampling;  // prompt_logprobs computes the whole prompt
  // Without max_tokens an answer gets the tenant's default, or what fits.
  EndOptions end;

  TenantId tenant;
  std::int32_t priority = 0;        // lower runs first
  std::string cache_salt;           // empty: public
  std::uint64_t public_tokens = 0;  // of the prompt, with a salt: shared with everyone
  std::int64_t timeout_ns = 0;      // from submission; 0: none
};

// What requests are held against, whoever asks.
struct RequestLimits {
  std::uint32_t vocabulary = 0;
  std::uint64_t context_tokens = 0;  // --max-model-len
  std::uint32_t answers_max = 1;     // --max-num-seqs
};

// Names the first field that is out of its range.
Status check_request(const Request& request, const RequestLimits& limits,
                     const TenantLimits& tenant);

// The longest that prompt and answer get together.
std::uint64_t context_of(const Request& request, const RequestLimits& limits,
                         const TenantLimits& tenant);

}  // namespace pagoda::engine
