// StepWork is what a step computes, as far as its time depends on it.
#pragma once

#include <cstdint>
#include <span>

#include "sched/plan.h"
#include "sched/sequence_task.h"

namespace pagoda::sched {

struct StepWork {
  std::uint32_t tokens = 0;         // all of them, draft tokens included
  std::uint32_t prompt_tokens = 0;  // those in chunks of more than one token, without drafts
  double prompt_keys = 0;           // pairs of a query of those chunks and a key that it sees
  double decode_keys = 0;           // keys that the other chunks read

  void add(const ScheduledChunk& chunk);
};

StepWork work_of(std::span<const ScheduledChunk> chunks);

// Returns how many pairs of a query and a key tokens [first, first + tokens) of the task make: the
// mean over KV cache groups, whose windows and KV policies bound the keys.
double query_key_pairs(const SequenceTask& task, std::uint64_t first, std::uint64_t tokens);

}  // namespace pagoda::sched
