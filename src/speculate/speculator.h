// Speculator finds draft tokens for the sequences of a step: every method that is on proposes, and
// the proposal that gives most tokens a second is taken, as far as it pays.
//
// How many tokens pay follows from measured steps (row_costs.h) and from the sequence's own drafts
// (acceptance.h). Thread rule: the engine's thread.
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
  // Returns the text that a client expects, for all sequences of its request; nullptr where nobody
  // would look at it.
  std::shared_ptr<const PredictedText> predict(std::span<const TokenId> tokens) const;

  // Begins a step of so many rows without drafts, in which a token of the draft model takes
  // `model_seconds` for each sequence.
  void begin_step(std::uint32_t rows, double model_seconds = 0) {
    load_ = {.tokens = static_cast<double>(rows), .rows = rows};
    rows_plain_ = rows;
    model_seconds_ = model_seconds;
  }
  std::uint32_t rows() const { return load_.rows; }
  // Returns how many tokens of the draft model would pay; 0: none.
  std::uint32_t weigh_model(SequenceDrafting& drafting, std::uint32_t tokens_max);
  // Chooses the draft of a sequence, at most `tokens_max` tokens, and returns how many it has; 0:
  // there is none that pays. Its tokens are in `draft`, which has room for kDraftTokensMax, unless
  // drafting.method is kDraftModel: they are the draft model's to find.
  std::uint32_t propose(const DraftQuery& query, SequenceDrafting& drafting,
                        std::uint32_t tokens_max, std::vector<TokenId>& draft);
  // The step has so many draft tokens of the sequence.
  void note_drafted(const SequenceDrafting& drafting, std::uint32_t tokens);

  // True: the drafts noted since begin_step() are worth it that the step begins `delay` seconds
  // later for them.
  bool drafts_pay(double delay) const;

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
  RowCosts::Choice choose(double probability, std::uint32_t drafts_max,
                          double draft_seconds = 0) const;
  RowCosts::Choice choose_model(SequenceDrafting& drafting, std::uint32_t tokens_max) const;

  SpeculationOptions options_;
  Drafter* forced_;
  std::uint32_t gram_;
  std::array<std::unique_ptr<Drafter>, kMethodCount> drafters_;  // nullptr: off
  ScopeOutputs outputs_;
  RowCosts costs_;
  std::array<TokenId, kDraftTokensMax> proposed_;
  RowCosts::Load load_;           // of the step that is being made
  std::uint32_t rows_plain_ = 0;  // of it without drafts
  double model_seconds_ = 0;
};

}  // namespace pagoda::speculate
