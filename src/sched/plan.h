// What one step does, decided before anything is touched.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/cache.h"
#include "sched/sequence_task.h"

namespace pagoda::sched {

// Tokens [first, first + tokens) of a task. `samples`: the last of them is the task's last
// token, so its logits give the next one.
struct ScheduledChunk {
  SequenceTask* task = nullptr;
  std::uint64_t first = 0;
  std::uint32_t tokens = 0;
  bool samples = false;
};

// A waiting task that was looked at and left.
struct Deferred {
  SequenceTask* task = nullptr;
  WaitReason reason = WaitReason::kNew;
  std::uint64_t blocks_wanted = 0;  // with kBlocks
  std::uint32_t passes = 0;         // later ones that were admitted
};

struct Admission {
  SequenceTask* task = nullptr;
  std::uint32_t tokens_max = 0;  // of its first chunk
};

// Lists are in the order of deciding. Memory is kept from step to step.
struct Plan {
  std::vector<SequenceTask*> preempt;
  std::vector<ScheduledChunk> chunks;  // of tasks that run already
  std::vector<Admission> admit;
  std::vector<SequenceTask*>
      load;  // could start, but pages from another tier shall take the room first
  std::vector<Deferred> deferred;

  void clear() {
    preempt.clear();
    chunks.clear();
    admit.clear();
    load.clear();
    deferred.clear();
  }
};

}  // namespace pagoda::sched
