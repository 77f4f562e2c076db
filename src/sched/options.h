// What bounds a step and a queue.
#pragma once

#include <cstdint>

#include "sched/context_class.h"

namespace pagoda::sched {

struct SchedulerOptions {
  std::uint32_t sequences_max = 64;        // --max-num-seqs
  std::uint32_t batched_tokens_max = 512;  // --max-num-batched-tokens; above sequences_max
  // Tokens of one task in a step while others want tokens too; 0: no limit of its own.
  std::uint32_t long_prefill_tokens = 0;
  // Prompt tokens of a step while several tenants are active: how long one that comes has to wait
  // for the step that runs. On a CPU so few cost 7 % of the speed, and 64 cost 2 %.
  std::uint32_t shared_step_tokens = 32;
  // Steps after its last request in which a tenant counts as active.
  std::uint64_t inactive_steps = 10'000;
  ContextClasses context_classes;

  // How often a task that does not fit is passed by others before they wait behind it.
  std::uint32_t passes_max = 64;
  // How many steps a task waits while another computes the prefix they share.
  std::uint32_t prefix_waits_max = 16'384;
  // Waiting tasks that one step looks at.
  std::uint32_t candidates_max = 64;
  // Steps after which a task that did not fit is looked at again, though no more blocks are free.
  std::uint32_t look_again_steps = 32;
};

}  // namespace pagoda::sched
