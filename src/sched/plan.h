// What one step does, decided before anything is touched.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/cache.h"
#include "sched/task.h"

namespace pagoda::sched {

// Rows [first, first + rows) of a task's tokens. `samples`: the last of them is the task's last
// token, so the row's logits give the next one.
struct PlannedRows {
  Task* task = nullptr;
  std::uint64_t first = 0;
  std::uint32_t rows = 0;
  bool samples = false;
};

// A waiting task that was looked at and left.
struct Unfit {
  Task* task = nullptr;
  WaitReason reason = WaitReason::kNew;
  std::uint64_t blocks_wanted = 0;  // with kBlocks
  std::uint32_t passes = 0;         // later ones that were admitted
};

struct Admission {
  Task* task = nullptr;
  std::uint32_t rows_max = 0;  // of its first chunk
};

// Lists are in the order of deciding. Memory is kept from step to step.
struct Plan {
  std::vector<Task*> preempt;
  std::vector<PlannedRows> rows;  // of tasks that run already
  std::vector<Admission> admit;
  std::vector<Task*> load;  // could start, but pages from another tier shall take the room first
  std::vector<Unfit> unfit;

  void clear() {
    preempt.clear();
    rows.clear();
    admit.clear();
    load.clear();
    unfit.clear();
  }
};

}  // namespace pagoda::sched
