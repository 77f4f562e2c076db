// StepDrafts shares the rows of a step among the drafts that its sequences could have.
//
// The likeliest draft tokens come first, whosesoever they are, and as many are taken as give most
// tokens a second for the whole step. A step's time grows by jumps where rows are computed by
// tiles, so that a draft which does not pay alone may pay beside others.
#pragma once

#include <cstdint>
#include <vector>

#include "speculate/row_costs.h"

namespace pagoda::speculate {

class StepDrafts {
 public:
  // Begins a step of so many rows without drafts, each of which is a token.
  void begin(std::uint32_t rows);

  // A draft that one more sequence could have.
  struct Offer {
    std::uint32_t tokens = 0;
    double probability = 0;  // that a token is accepted where those before it are
    bool by_model = false;   // the draft model finds it, a token of all such offers in a launch
  };
  void add(const Offer& offer);

  struct Terms {
    const RowCosts* costs = nullptr;  // nullptr: as many are taken as there are
    const RowCosts* model_costs =
        nullptr;                   // of launches of the draft model; nullptr: they are free
    std::uint32_t tokens_max = 0;  // of all
    double delay = 0;              // seconds: a step with drafts begins so much later
  };
  // Chooses how many tokens of each offer are taken, and returns how many that are in all.
  std::uint32_t choose(const Terms& terms);

  // Results of choose(), by the order of add().
  std::uint32_t taken(std::size_t offer) const { return taken_[offer]; }
  std::uint32_t rows() const { return rows_ + tokens_taken_; }

 private:
  // The next token of an offer.
  struct Next {
    double gain;  // the probability that it and all before it are accepted
    std::uint32_t place;
    std::uint32_t offer;
  };
  static bool is_later(const Next& a, const Next& b);

  // The first tokens of order_ that give most tokens a second; 0: none pays.
  struct Best {
    double rate = 0;
    std::uint32_t tokens = 0;
  };
  Best order_tokens(const Terms& terms, bool with_model);
  double model_seconds(const Terms& terms, std::uint32_t place);

  std::uint32_t rows_ = 0;
  std::uint32_t tokens_taken_ = 0;
  std::vector<Offer> offers_;
  std::vector<std::uint32_t> taken_;  // [offer]
  std::vector<Next> heap_;
  std::vector<std::uint32_t> order_;  // offers whose tokens come first, a place a token
  std::vector<std::uint32_t> order_with_model_;
  std::vector<std::uint32_t> launch_rows_;  // of the draft model's launches, by place
};

}  // namespace pagoda::speculate
