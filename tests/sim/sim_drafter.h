// SimDrafter drafts by seed: what the sequence will say, that with a wrong token somewhere, too
// much, nothing, tokens of no vocabulary, end tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/sim_setup.h"
#include "speculate/drafter.h"

namespace pagoda::sim {

class SimDrafter final : public speculate::Drafter {
 public:
  SimDrafter(std::uint64_t seed, std::uint32_t vocabulary)
      : dice_(seed), vocabulary_(vocabulary), weighs_costs_(dice_.one_in(2)) {}

  // Adds a sequence that a request will have: prompt and output.
  void expect(std::vector<TokenId> sequence) { sequences_.push_back(std::move(sequence)); }

  speculate::Proposal propose(const speculate::DraftQuery& query,
                              speculate::SequenceDrafting& drafting,
                              std::span<TokenId> room) override;
  bool weighs_costs() const override { return weighs_costs_; }

 private:
  TokenId any_token() {
    return TokenId(static_cast<std::uint32_t>(dice_.between(0, vocabulary_ - 1)));
  }

  Dice dice_;
  std::uint32_t vocabulary_;
  bool weighs_costs_;
  std::vector<std::vector<TokenId>> sequences_;
};

}  // namespace pagoda::sim
