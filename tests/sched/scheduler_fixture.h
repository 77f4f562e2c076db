// The fixture drives a scheduler without a model: tests add sequences and run single steps, and
// every sampled token is 1.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sched/scheduler.h"

namespace pagoda::sched {

struct SchedulerFixtureOptions {
  SchedulerOptions scheduler;
  std::uint32_t blocks = 1000;
  std::uint32_t block_tokens = 4;
  std::uint32_t launches_ahead = 0;
};

class SchedulerFixture {
 public:
  explicit SchedulerFixture(const SchedulerFixtureOptions& options)
      : cache_({.blocks = options.blocks, .block_tokens = options.block_tokens}),
        scheduler_(options.scheduler, cache_, tenants, options.launches_ahead) {}

  // Enqueues a sequence whose prompt is the first `prompt_tokens` tokens of text `text`, or of a
  // text that no other sequence has.
  SequenceTask& add(std::uint64_t prompt_tokens, std::uint64_t output_tokens,
                    std::optional<std::uint32_t> text = std::nullopt, TenantId tenant = TenantId(0),
                    std::int32_t priority = 0, std::int64_t deadline_ns = kNoDeadline) {
    SequenceTask& task = *tasks_.emplace_back(std::make_unique<SequenceTask>());
    const auto number = text.value_or(static_cast<std::uint32_t>(1000 + tasks_.size()));
    for (std::uint64_t i = 0; i < prompt_tokens; ++i) {
      task.tokens.push_back(TokenId(number * 100000 + static_cast<std::uint32_t>(i)));
    }
    task.prompt_tokens = prompt_tokens;
    task.tokens_max = prompt_tokens + output_tokens;
    task.tenant = tenant;
    task.priority = priority;
    task.deadline_ns = deadline_ns;
    task.scope = cache_.scope("fixture", "").value();
    scheduler_.enqueue(task);
    return task;
  }

  // Runs one step and returns the chunks that were computed. Sequences that reach tokens_max
  // finish.
  std::vector<ScheduledChunk> step() {
    const Step* const step = scheduler_.reserve(scheduler_.plan());
    if (step == nullptr) return {};
    const std::vector<ScheduledChunk> chunks = scheduler_.begin_collect().chunks;
    for (const ScheduledChunk& planned : chunks) {
      scheduler_.commit(planned);
      if (!planned.samples) continue;
      scheduler_.append(*planned.task, TokenId(1));
      if (planned.task->tokens.size() == planned.task->tokens_max) scheduler_.finish(*planned.task);
    }
    scheduler_.end_collect();
    scheduler_.check();
    return chunks;
  }

  // Runs steps until the sequence is finished, at most `steps_max`. Returns the number of steps.
  std::uint64_t steps_until_finished(const SequenceTask& task, std::uint64_t steps_max = 10000) {
    std::uint64_t steps = 0;
    while (task.state != TaskState::kFinished && steps < steps_max) {
      step();
      ++steps;
    }
    return steps;
  }

  static std::uint64_t tokens_of(const std::vector<ScheduledChunk>& chunks,
                                 const SequenceTask& task) {
    std::uint64_t count = 0;
    for (const ScheduledChunk& planned : chunks)
      count += planned.task == &task ? planned.tokens : 0;
    return count;
  }

  TenantTable tenants;
  Scheduler& scheduler() { return scheduler_; }
  kv::Cache& cache() { return cache_; }

 private:
  kv::Cache cache_;
  std::vector<std::unique_ptr<SequenceTask>> tasks_;
  Scheduler scheduler_;
};

}  // namespace pagoda::sched
