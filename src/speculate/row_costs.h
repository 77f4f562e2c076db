// RowCosts know how long steps of so many rows take on this machine, by the steps that were
// measured, and how many draft tokens pay.
//
// A step with drafts pays where it gives more tokens a second than the step without them. The
// measured times are moving averages; between them they are interpolated, and times that were not
// measured for long are forgotten. Nothing here changes a token, only how many come in a step.
#pragma once

#include <array>
#include <cstdint>

namespace pagoda::speculate {

class RowCosts {
 public:
  static constexpr std::uint32_t kRowsMax = 512;

  // `slope`: what a row more costs, against a step of one row, before anything is known.
  explicit RowCosts(float slope = 0.1f);

  // A step computed `rows` rows, all with logits, in so many seconds.
  void note(std::uint32_t rows, double seconds);

  bool is_measured() const { return steps_ > 0; }
  // Returns the estimated seconds of a step of so many rows; only ratios mean something before
  // anything was measured.
  double seconds(std::uint32_t rows) const;

  // Returns the tokens a second that a step with drafts must exceed: those of so many rows without
  // any, and a little more.
  double rate_to_beat(std::uint32_t rows) const;
  // True: drafts of up to so many tokens in all would pay if all of them were accepted.
  bool may_pay(std::uint32_t rows, std::uint32_t drafts_max) const;

  struct Choice {
    std::uint32_t drafts = 0;      // that pay best; 0: none pays
    double tokens_per_second = 0;  // of the best length, whether it pays or not
  };
  // A draft of one sequence.
  struct Draft {
    double probability = 0;       // that a token is accepted if those before it are
    std::uint32_t tokens = 0;     // at most
    double token_seconds = 0;     // that finding each takes
    std::uint32_t sequences = 1;  // that have such drafts
  };
  // Chooses how many tokens of the draft pay in a step of so many rows that has no others.
  Choice choose(std::uint32_t rows, const Draft& draft) const;

 private:
  struct Measured {
    float seconds = 0;
    std::uint64_t step = 0;  // of the last measurement; 0: none
  };

  void estimate();
  float usual(std::uint32_t rows) const;

  float slope_;
  std::array<Measured, kRowsMax + 1> measured_ = {};
  std::array<float, kRowsMax + 1> seconds_ = {};  // estimates
  std::uint64_t steps_ = 0;
};

}  // namespace pagoda::speculate
