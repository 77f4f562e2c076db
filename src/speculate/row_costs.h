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

  struct Choice {
    std::uint32_t drafts = 0;  // that pay best; 0: none pays
    double tokens = 0;         // that are expected of them
    double tokens_per_second = 0;
  };
  // The step as it is before more drafts are added.
  struct Load {
    double tokens = 0;  // that are expected of it
    std::uint32_t rows = 0;
    double draft_seconds = 0;  // that finding its drafts takes
  };
  // Chooses how many draft tokens, up to drafts_max, are added to a step, where each takes
  // `draft_seconds` to find and is accepted with `probability` if those before it are.
  Choice choose(const Load& load, double probability, std::uint32_t drafts_max,
                double draft_seconds = 0) const;

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
