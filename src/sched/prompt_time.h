// PromptTime bounds the prompt tokens of a step that is being planned by the time that they are
// predicted to take, so that sequences which decode beside them get their tokens within the target
// for inter-token latency (--itl-target).
//
// Prompts have what decodes leave of the target, less a margin of twice the predictions' mean
// error, and at least an eighth of the target and 16 tokens, so that they always get on. Steps are
// not planned beyond what measured steps say much about (StepCosts::prompt_tokens_trusted). Where
// nobody decodes nothing is bounded.
#pragma once

#include <cstdint>

#include "sched/step_time.h"

namespace pagoda::sched {

// The target, and what steps take.
struct ItlLimit {
  double target_s = 0;  // 0: none
  StepCosts costs = {};
};

class PromptTime {
 public:
  // Starts a plan; no time bounds it before begin().
  void clear() { is_bounded_ = false; }
  // The step has this work of sequences that decode.
  void begin(const ItlLimit& limit, const StepWork& decodes);
  bool is_bounded() const { return is_bounded_; }

  // Returns how many of `tokens` prompt tokens there is time for at the front of a prompt, where
  // they cost least; 0 once the time is used up.
  std::uint64_t tokens_left(std::uint64_t tokens) const;
  // Returns how many of the next `tokens` tokens of a task that has `first` computed there is time
  // for, in `share` of the time left; at least one of any.
  std::uint64_t tokens_of(const SequenceTask& task, std::uint64_t first, std::uint64_t tokens,
                          double share) const;
  void take(const SequenceTask& task, std::uint64_t first, std::uint64_t tokens);

 private:
  double seconds(double tokens, double keys) const {
    return costs_.token_s * tokens + costs_.prompt_key_s * keys;
  }

  bool is_bounded_ = false;
  StepCosts costs_;
  double seconds_left_ = 0;
  std::uint64_t tokens_trusted_ = 0;
  std::uint64_t tokens_sure_ = 0;  // whatever they are predicted to take
};

}  // namespace pagoda::sched
