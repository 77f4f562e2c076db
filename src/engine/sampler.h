// Samples a token from logits, for one request among many.
//
// In this order, each step working on what the one before left:
//   1. the bias of each token that has one is added
//   2. penalties: over tokens of prompt and output, a positive logit is divided by
//      repetition_penalty, any other multiplied; then, over tokens of the output,
//      frequency_penalty * count and presence_penalty are taken away
//   3. tokens that the stop criteria forbid (min_tokens) are dropped, and those that the grammar
//      of the request does not allow (token_constraint.h)
//   4. temperature: below kGreedyBelow the first token in order is taken (logit_order.h: the
//      highest logit, ties to the lowest id); else weights are exp((logit - best) / temperature)
//   5. min_p: tokens below this share of the best one's probability are dropped
//   6. top_k: all but the first k tokens in order are dropped
//   7. top_p: all but the shortest head of the order that reaches this share of the mass are
//      dropped
//   8. a token is drawn by weight (top_p_sampler.h)
// This is vLLM's order. The token is a function of the row, the request's options and tokens, the
// sequence's seed and the position: a batch cannot change it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/logprobs.h"
#include "engine/sampler_scratch.h"
#include "engine/sampling_params.h"
#include "engine/seen_tokens.h"
#include "engine/stop_criteria.h"
#include "engine/token_constraint.h"

namespace pagoda::engine {

// SamplingState is what a request's next token depends on besides its logits. Made anew from prompt
// and output (one accept() per token) the state is the same again.
class SamplingState {
 public:
  // Options must have passed check_sampling.
  SamplingState(SamplingParams options, std::span<const TokenId> prompt, StopCriteria end = {});

  // Call on the state that a request begins with: returns the state of sequence number `sequence`,
  // 0 being the first, whose options hold that sequence's seed (seed_of_sequence).
  SamplingState fork(std::uint32_t sequence) const;

  // Returns the state by which a draft model chooses the tokens that may follow: with the random
  // numbers of this state where it `draws`, else the likeliest ones. What depends on token ids,
  // such as biases, grammars and forbidden end tokens, is left out unless the model has the same
  // token ids.
  SamplingState for_drafts(bool draws, bool has_same_ids) const;

  // Restricts the output to the grammar of `matcher`.
  void constrain(const structured::Matcher& matcher) { constraint_.emplace(matcher); }
  // Computes what sampling needs besides the logits, unless that was done since the last token.
  Status prepare() { return constraint_ ? constraint_->prepare() : ok_status(); }

  // Records a token that was added to the output.
  void accept(TokenId token);

  const SamplingParams& options() const { return options_; }
  const StopCriteria& stop_criteria() const { return end_; }
  std::uint64_t generated() const { return generated_; }
  const SeenTokens& seen() const { return seen_; }
  const std::optional<TokenConstraint>& constraint() const { return constraint_; }
  // The tokens that the grammar leaves no choice about; nullptr: there is no grammar.
  speculate::ForcedTokens* forced_tokens() { return constraint_ ? &*constraint_ : nullptr; }

 private:
  SamplingParams options_;
  StopCriteria end_;
  SeenTokens seen_;  // empty without penalties
  std::optional<TokenConstraint> constraint_;
  std::uint64_t generated_ = 0;
};

struct Sampled {
  TokenId token;
  std::optional<Logprobs> logprobs;  // set when options.logprobs asks; its list is in the scratch
};

// Returns the token for absolute position `position`; the state is prepared. An error when a logit
// is not finite, or when bias, stop criteria and grammar leave no token. Allocates nothing once the
// scratch has served as many logprobs.
Result<Sampled> sample(std::span<const float> logits, const SamplingState& state,
                       SamplerScratch& scratch, std::uint64_t position);

}  // namespace pagoda::engine
