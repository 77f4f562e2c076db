// RecordedDrafter drafts what sequences said before, each token wrong with some probability: for
// measurements and tests, which know the answers.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "speculate/drafter.h"

namespace pagoda::speculate {

class RecordedDrafter final : public Drafter {
 public:
  struct Options {
    double wrong = 0;               // probability of each token
    std::uint32_t tokens_max = 63;  // of a draft
    std::uint32_t vocabulary = 2;   // at least 2
    std::uint64_t seed = 0;
    bool weighs_costs = false;
  };
  explicit RecordedDrafter(const Options& options) : options_(options) {}

  // Adds a sequence, prompt and output. Not while an engine drafts.
  void record(std::vector<TokenId> sequence);

  // Takes the first of several sequences that begin with the query's tokens.
  Proposal propose(const DraftQuery& query, SequenceDrafting& drafting,
                   std::span<TokenId> room) override;
  bool weighs_costs() const override { return options_.weighs_costs; }

 private:
  Options options_;
  std::map<TokenId, std::vector<std::vector<TokenId>>> sequences_;  // by their first token
  std::uint64_t drawn_ = 0;
};

}  // namespace pagoda::speculate
