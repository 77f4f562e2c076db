// A Plan says what one step of continuous batching does. The planner decides a plan before any
// state changes.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/cache.h"
#include "sched/sequence_task.h"

namespace pagoda::sched {

// A chunk is tokens [first, first + tokens) of a sequence. `samples` is true when the chunk ends
// with the sequence's last token, whose logits give the next token. Behind that token stand
// `drafts` draft tokens: a draft token is the sequence's own where the token before it gives it.
struct ScheduledChunk {
  SequenceTask* task = nullptr;
  std::uint64_t first = 0;
  std::uint32_t tokens = 0;  // draft tokens included
  bool samples = false;
  std::uint32_t drafts = 0;
};

// A waiting sequence that the planner examined and did not admit.
struct Deferred {
  SequenceTask* task = nullptr;
  WaitReason reason = WaitReason::kNew;
  std::uint64_t blocks_wanted = 0;  // set when the reason is kBlocks
  std::uint32_t passes = 0;         // sequences admitted after this one was deferred
};

struct Admission {
  SequenceTask* task = nullptr;
  std::uint32_t tokens_max = 0;  // limit of the first prefill chunk
};

// Lists are in the order of the decisions. A plan's memory is reused from step to step.
struct Plan {
  std::vector<SequenceTask*> preempt;
  std::vector<ScheduledChunk> chunks;  // chunks of running sequences
  std::vector<Admission> admit;
  std::vector<SequenceTask*> load;  // could start, but pages of another tier get the room first
  std::vector<Deferred> deferred;
  std::uint64_t tokens_left = 0;  // of the step's token budget, for draft tokens

  void clear() {
    preempt.clear();
    chunks.clear();
    admit.clear();
    load.clear();
    deferred.clear();
  }
};

}  // namespace pagoda::sched
