// StepTime predicts how long a step takes, by the steps that were measured on this machine:
//
//   seconds = step + token * tokens + prompt_key * prompt_keys + decode_key * decode_keys
//
// The four costs are fitted by least squares of relative errors, none below 0. Sums are kept for
// classes of steps (decode alone, and prompt tokens by powers of two), and a class forgets by its
// own steps: a thousand decode steps do not wash out what a step of 4,096 prompt tokens took. A
// step that took more than twice its prediction was disturbed, or the machine has changed: it
// counts as twice the prediction, and everything known fades a little, so that one of them moves
// little and a series moves everything.
//
// speculate/row_costs.h measures steps, too, for another question: there a table by exact counts of
// rows with logits, up to 512, whose small differences decide about drafts; here large steps of any
// mixture, most of which were never measured. Thread rule: one thread. Memory is fixed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sched/step_work.h"

namespace pagoda::sched {

// StepCosts are a prediction: plain numbers, so that a plan made by them is a pure function. Before
// anything is measured all costs are 0.
struct StepCosts {
  static constexpr std::size_t kTerms = 4;
  // Prompt tokens of a step that are planned before any was measured.
  static constexpr std::uint32_t kTrustedAtFirst = 32;

  double step_s = 0;
  double token_s = 0;
  double prompt_key_s = 0;
  double decode_key_s = 0;
  // Mean relative error of predictions for steps with prompt tokens.
  double spread = 0.1;
  // Steps of up to so many prompt tokens are predicted: four times the most that were measured.
  std::uint32_t prompt_tokens_trusted = kTrustedAtFirst;

  double seconds(const StepWork& work) const {
    return step_s + token_s * work.tokens + prompt_key_s * work.prompt_keys +
           decode_key_s * work.decode_keys;
  }
};

class StepTime {
 public:
  // A step of this work took so many seconds.
  void note(const StepWork& work, double seconds);
  const StepCosts& costs() const { return costs_; }

 private:
  using Terms = std::array<double, StepCosts::kTerms>;
  // Sums over measured steps, each weighted by 1 / seconds^2.
  struct Sums {
    std::array<Terms, StepCosts::kTerms> products{};  // of two terms
    Terms with_seconds{};                             // of a term and the seconds
    double steps = 0;                                 // that are not forgotten

    void fade(double factor);
    void add(const Terms& terms, double seconds, double scale);
  };

  static constexpr std::size_t kClasses = 18;  // decode alone, then 2^0 … 2^16 prompt tokens
  static std::size_t class_of(const StepWork& work);
  void fit();

  std::array<Sums, kClasses> classes_;
  StepCosts costs_;
  std::uint32_t prompt_tokens_most_ = 0;  // that were measured
};

}  // namespace pagoda::sched
