// Runs one request alone, from prompt to last token: the plainest way to use a decoder, and the
// reference for every other way. With the KV cache each step feeds one token; without it each step
// computes the whole sequence again. Both give the same tokens, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/token_id.h"
#include "engine/finish_reason.h"
#include "engine/sampler.h"
#include "model/decoder.h"

namespace pagoda::engine {

struct SingleRequest {
  std::vector<TokenId> prompt;  // at least one token
  std::uint32_t tokens_max = 256;
  std::uint64_t context_max = 0;  // prompt and output together
  bool kv_cache = true;
  SamplingParams sampling;
  std::shared_ptr<const structured::Matcher> constraint;  // of the output; nullptr: any text
  std::function<bool(TokenId)> stops;     // true: the sequence ends after this token
  std::function<void(TokenId)> on_token;  // called for each output token but the stopping one
  std::function<void(std::uint64_t, std::uint64_t)> on_prefill;  // prompt tokens done, of all
  std::function<bool()> cancelled;                               // asked between steps
};

struct SingleOutput {
  std::vector<TokenId> tokens;
  FinishReason reason = FinishReason::kLength;
  double first_token_s = 0;           // from the start to the first token: the prefill
  double decode_s = 0;                // from the first token to the last
  std::uint64_t tokens_computed = 0;  // tokens fed to the model, over all steps
};

// Fails when the prompt does not fit the context, naming both numbers, when a token id is not in
// the vocabulary, and, as in the engine, when logits, queries, keys or values are not finite
// (nonfinite_rows.h).
Result<SingleOutput> generate_single(model::Decoder& decoder, const SingleRequest& request,
                                     const Clock& clock);

}  // namespace pagoda::engine
