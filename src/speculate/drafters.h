// The drafters without a model.
#pragma once

#include <cstdint>
#include <span>

#include "speculate/drafter.h"
#include "speculate/options.h"

namespace pagoda::speculate {

// PredictionDrafter goes on with the client's prediction. Where the output left it, the drafter
// looks for the output's last tokens in the prediction, first behind the place that was left.
class PredictionDrafter final : public Drafter {
 public:
  Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                   std::span<TokenId> room) override;
};

// TreeDrafter goes on with what the prefix tree holds behind the sequence's tokens, within the
// sequence's own scope.
class TreeDrafter final : public Drafter {
 public:
  Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                   std::span<TokenId> room) override;
};

// SuffixDrafter goes on with what followed the longest run of the sequence's last tokens: in the
// sequence itself, else in past outputs of its scope. A longer match gives a longer draft.
class SuffixDrafter final : public Drafter {
 public:
  explicit SuffixDrafter(const SpeculationOptions& options) : options_(options) {}
  Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                   std::span<TokenId> room) override;

 private:
  Proposal propose_from(std::span<const TokenId> text, const TokenIndex& index,
                        std::span<const TokenId> tokens, std::uint32_t match_min,
                        std::span<TokenId> room) const;

  SpeculationOptions options_;
};

// NgramDrafter is vLLM's `ngram`: of the longest run of last tokens, within lookup_min and
// lookup_max, that the sequence had before, what followed its earliest occurrence.
class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const SpeculationOptions& options) : options_(options) {}
  Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                   std::span<TokenId> room) override;

 private:
  SpeculationOptions options_;
};

// ConstraintDrafter goes on with tokens that the sequence's grammar leaves no choice about.
class ConstraintDrafter final : public Drafter {
 public:
  Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                   std::span<TokenId> room) override;
};

// So many tokens are indexed in a step at most: a long prompt is indexed over several steps.
inline constexpr std::size_t kIndexedAtOnce = 4096;

}  // namespace pagoda::speculate
