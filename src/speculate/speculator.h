// Speculator finds draft tokens for the sequences of a step: every method that is on proposes, the
// best proposal of each sequence is offered, and what pays of all offers is taken.
//
// How many tokens pay follows from measured steps (row_costs.h), from each sequence's own drafts
// (acceptance.h) and from what the others of the step offer (step_drafts.h). Thread rule: the
// engine's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "speculate/drafter.h"
#include "speculate/options.h"
#include "speculate/past_outputs.h"
#include "speculate/row_costs.h"
#include "speculate/step_drafts.h"

namespace pagoda::speculate {

class Speculator {
 public:
  // `forced`, for tests and measurements: its drafts are taken instead of those of methods;
  // nullptr: none. It must outlive the speculator. `row_cost` is the slope of RowCosts.
  explicit Speculator(const SpeculationOptions& options, Drafter* forced = nullptr,
                      float row_cost = 0.1f);

  bool is_on() const { return forced_ != nullptr || !options_.methods.empty(); }
  const SpeculationOptions& options() const { return options_; }
  const RowCosts& costs() const { return costs_; }

  struct SequenceTerms {
    std::shared_ptr<const PredictedText> prediction = {};
    std::uint64_t tokens_expected = 0;  // of prompt and output
    std::uint32_t tokens_max = kDraftTokensMax;
    bool is_sampled = false;  // by random numbers
    ScopeOutputs::Scope scope = {};
  };
  std::unique_ptr<SequenceDrafting> open(const SequenceTerms& terms);
  // Takes the memory in which a running sequence's drafts are looked for: one that waits has none.
  void start(SequenceDrafting& drafting) const;
  // Returns the text that a client expects, indexed; nullptr where nobody would look at it.
  std::shared_ptr<const PredictedText> predict(const std::shared_ptr<PredictedText>& text) const;

  // A step before it has drafts.
  struct StepTerms {
    std::uint32_t rows = 0;
    std::uint32_t sequences = 1;            // that may have drafts
    std::uint32_t drafts_max = 0;           // tokens, of all
    const RowCosts* model_costs = nullptr;  // of the draft model; nullptr: not measured
  };
  void begin_step(const StepTerms& terms);
  // Returns the rows of the step, with the drafts that were taken.
  std::uint32_t rows() const { return step_.rows(); }
  // Returns how many tokens of the draft model would pay; 0: none.
  std::uint32_t weigh_model(SequenceDrafting& drafting, std::uint32_t tokens_max);
  // Finds the best draft of a sequence, at most `tokens_max` tokens, and returns how many it has;
  // 0: there is none. Its tokens are in `draft`, which has room for kDraftTokensMax, unless
  // drafting.method is kDraftModel: they are the draft model's to find.
  std::uint32_t propose(const DraftQuery& query, SequenceDrafting& drafting,
                        std::uint32_t tokens_max, std::vector<TokenId>& draft);
  // The step could have so many tokens of the draft that was found last for this sequence, which
  // must outlive the step's choice.
  void offer(SequenceDrafting& drafting, std::uint32_t tokens) {
    offer(drafting, tokens, drafting.method, drafting.match);
  }
  // The same of the draft model, behind weigh_model(), whatever was found last.
  void offer_model(SequenceDrafting& drafting, std::uint32_t tokens) {
    const std::uint32_t rule = drafting.model_draws ? kDrawnRule : kLikeliestRule;
    offer(drafting, tokens, DraftMethod::kDraftModel, rule);
  }
  // Chooses how much of the drafts that were offered is taken, and returns how many tokens that is
  // in all. A step with drafts begins `delay` seconds later.
  std::uint32_t choose(double delay);
  // Returns how many tokens were taken of an offer, by the order of offer().
  std::uint32_t taken(std::size_t offer) const { return step_.taken(offer); }

  // The draft model had no token for a sequence though one was wanted.
  void note_failed(SequenceDrafting& drafting) { note_verified(drafting, 1, 0); }
  // So many tokens of a draft were accepted.
  void note_verified(SequenceDrafting& drafting, std::uint32_t drafted, std::uint32_t accepted);
  // A step whose rows all had logits took so long.
  void note_step(std::uint32_t rows, double seconds) { costs_.note(rows, seconds); }
  void note_output(SequenceDrafting& drafting, std::span<const TokenId> output);

  void forget(std::uint32_t owner) { outputs_.forget(owner); }
  void forget_all() { outputs_.forget_all(); }

 private:
  bool weighs_costs() const {
    return forced_ != nullptr ? forced_->weighs_costs() : options_.weighs_costs;
  }
  // The draft that was offered of a sequence.
  struct Offered {
    SequenceDrafting* drafting;
    DraftMethod method;
    std::uint32_t match;
  };
  void offer(SequenceDrafting& drafting, std::uint32_t tokens, DraftMethod method,
             std::uint32_t match);
  RowCosts::Choice weigh(const RowCosts::Draft& draft) const;
  RowCosts::Draft draft_of_model(SequenceDrafting& drafting, std::uint32_t tokens_max) const;
  RowCosts::Draft alike(RowCosts::Draft draft) const;

  SpeculationOptions options_;
  Drafter* forced_;
  std::uint32_t gram_;
  std::array<std::unique_ptr<Drafter>, kMethodCount> drafters_;  // nullptr: off
  ScopeOutputs outputs_;
  RowCosts costs_;
  std::array<TokenId, kDraftTokensMax> proposed_;
  // The step that is being made.
  StepDrafts step_;
  std::vector<Offered> offered_;  // [offer]
  StepTerms terms_;
  bool may_pay_ = false;
};

}  // namespace pagoda::speculate
