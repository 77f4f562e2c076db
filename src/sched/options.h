// SchedulerOptions bound the batch of one step, and the wait of requests in the queue.
#pragma once

#include <cstdint>

#include "sched/context_class.h"

namespace pagoda::sched {

struct SchedulerOptions {
  std::uint32_t sequences_max = 64;        // sequences that run at once
  std::uint32_t batched_tokens_max = 512;  // tokens of one step; at least sequences_max
  // Limits the prefill chunk of one sequence while other sequences want tokens of the step too; 0:
  // no limit (chunked prefill is still bounded by batched_tokens_max).
  std::uint32_t long_prefill_tokens = 0;
  // Limits the prefill tokens of a step while several tenants are active, because a new request
  // waits for the step that runs. On a CPU 32 tokens cost 7 % of the throughput, and 64 tokens cost
  // 2 %.
  std::uint32_t shared_step_tokens = 32;
  // Prompt tokens of a step are bounded so that the step is predicted to take at most so long while
  // sequences decode (prompt_time.h); 0: no target.
  double itl_target_s = 0;
  // Work of grammars (structured output) that a tenant's sequences may cost a step while several
  // tenants run, in configurations of a grammar's automaton: 50 ns each on an Emerald Rapids
  // at 2.7 GHz, a millisecond in all. A sequence of more goes alone; one
  // of at most light_grammar_work is not counted.
  std::uint64_t tenant_grammar_work = 20'000;
  std::uint64_t light_grammar_work = 1'000;
  // A tenant counts as active for this many steps after its last request.
  std::uint64_t inactive_steps = 10'000;
  ContextClasses context_classes;

  // Up to this many sequences may pass a waiting sequence that does not fit. After so many, all
  // others wait, so that a large request does not starve.
  std::uint32_t passes_max = 64;
  // A sequence waits at most this many steps for another one that computes their shared prefix.
  std::uint32_t prefix_waits_max = 16'384;
  // One step examines at most this many waiting sequences.
  std::uint32_t candidates_max = 64;
  // A sequence that lacked blocks is examined again after this many steps, even if too few blocks
  // are free.
  std::uint32_t look_again_steps = 32;
};

}  // namespace pagoda::sched
