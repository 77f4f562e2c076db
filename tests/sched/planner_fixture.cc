#include "sched/planner_fixture.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "sched/planner.h"

namespace pagoda::sched {
namespace {

constexpr std::uint32_t kBlockTokens = 4;
constexpr LaunchNumber kCollected = 7;

SchedulerOptions options_of(const PlannerCase& row) {
  SchedulerOptions options;
  options.sequences_max = row.sequences_max;
  options.batched_tokens_max = row.batched_tokens_max;
  options.long_prefill_tokens = row.long_prefill_tokens;
  options.shared_step_tokens = row.shared_step_tokens;
  options.inactive_steps = 50;
  options.passes_max = row.passes_max;
  options.candidates_max = row.candidates_max;
  options.prefix_waits_max = 3;
  options.context_classes = ContextClasses::parse(row.context_classes).value();
  return options;
}

std::vector<TokenId> text_of(const PlannedTask& planned) {
  const auto text = static_cast<std::uint32_t>(planned.text != 0 ? planned.text : planned.name);
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < planned.tokens; ++i) tokens.push_back(TokenId(text * 10'000 + i));
  return tokens;
}

// The view of a row, made without a scheduler.
class ViewOnATable {
 public:
  explicit ViewOnATable(const PlannerCase& row)
      : options_(options_of(row)),
        cache_({.blocks = row.blocks, .block_tokens = kBlockTokens, .groups = row.groups}),
        demand_{.block_tokens = kBlockTokens, .chunk_tokens_max = row.batched_tokens_max},
        classes_(options_.context_classes.size()),
        view_{.running = {},
              .waiting = waiting_,
              .tenants = tenants_,
              .cache = cache_,
              .classes = classes_,
              .blocks_coming = row.blocks_coming,
              .launches_collected = kCollected,
              .step = row.step,
              .itl = row.itl} {
    for (const PlannedTenant& tenant : row.tenants) {
      const TenantId id = tenants_.add("tenant", tenant.limits);
      tenants_[id].clock = tenant.clock;
      tenants_[id].asked_step = tenant.asked_step;
    }
    for (const PlannedTask& planned : row.cached) compute(make(planned));
    for (const auto& task : tasks_) cache_.close(*task->sequence);
    tasks_.clear();
    names_.clear();
    for (const PlannedTask& planned : row.tasks) place(planned, make(planned));
    std::sort(running_.begin(), running_.end(), comes_before);
    view_.running = running_;
  }

  std::string plan() {
    Planner planner(options_, demand_);
    const std::string words = words_of(planner.plan(view_));
    EXPECT_EQ(words_of(planner.plan(view_)), words) << "a plan touches nothing";
    return words;
  }

  std::uint64_t tokens_left() { return Planner(options_, demand_).plan(view_).tokens_left; }

 private:
  SequenceTask& make(const PlannedTask& planned) {
    SequenceTask& task = *tasks_.emplace_back(std::make_unique<SequenceTask>());
    names_.push_back(planned.name);
    task.tokens = text_of(planned);
    task.prompt_tokens = planned.tokens;
    task.tokens_max = planned.tokens_max;
    task.sequence_count = planned.sequences;
    task.priority = planned.priority;
    task.tenant = TenantId(planned.tenant);
    task.compute_whole_prompt = planned.compute_whole_prompt;
    task.scope = cache_.scope("table", planned.salt).value();
    task.awaits_load = planned.awaits_load;
    task.load_wants_room = planned.load_wants_room;
    task.tokens_seen_in_pool = planned.tokens_seen_in_pool;
    task.paused = planned.paused;
    task.tokens_at_admission = planned.tokens_at_admission;
    task.waits_for = planned.waits_for;
    task.arrival = tasks_.size();
    task.tokens_launched = planned.computed;
    task.last_launch = planned.launched ? kCollected + 1 : kCollected - planned.launches_ago;
    task.grammar_work = planned.grammar_work;
    task.samples_in_flight = planned.samples;
    task.context_class = options_.context_classes.class_of(planned.tokens);
    task.times_passed = planned.times_passed;
    task.prefix_waits = planned.prefix_waits;
    task.blocks_wanted = planned.blocks_wanted;
    task.look_again_step = planned.look_again_step;
    if (!planned.drops.empty()) {
      task.drops = PageDrops{kv::KvPolicy::parse(planned.drops).value(), planned.prompt_of_drops,
                             kBlockTokens};
    }
    return task;
  }

  // Opens the task's sequence with nothing shared and commits what it has computed.
  void compute(SequenceTask& task) {
    auto opened = cache_.open(*task.scope, {}, task.tokens);
    task.sequence.emplace(std::move(std::get<kv::Opened>(opened).sequence));
    EXPECT_EQ(cache_.reserve(*task.sequence, task.tokens_launched).index(), 0u)
        << "the row's pool is too small for what runs";
    cache_.commit(*task.sequence, std::span(task.tokens).first(task.tokens_launched));
  }

  void place(const PlannedTask& planned, SequenceTask& task) {
    Tenant& tenant = tenants_[task.tenant];
    if (!planned.runs) {
      ++tenant.requests_queued;
      waiting_.push(task);
      return;
    }
    compute(task);
    task.state = TaskState::kRunning;
    running_.push_back(&task);
    tenant.sequences_running += task.sequence_count;
    tenant.kv_tokens_held += task.length();
    view_.sequences_claimed += task.sequence_count;
    classes_[task.context_class].sequences += task.sequence_count;
    classes_[task.context_class].blocks +=
        demand_.blocks_at_peak(task.scope->groups(), task.length());
  }

  std::string name_of(const SequenceTask* task) const {
    const auto found = std::find_if(tasks_.begin(), tasks_.end(),
                                    [&](const auto& owned) { return owned.get() == task; });
    return std::string(1, names_[static_cast<std::size_t>(found - tasks_.begin())]);
  }

  std::string words_of(const Plan& plan) const {
    std::string words;
    const auto add = [&](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
    for (const SequenceTask* const task : plan.preempt) add("-" + name_of(task));
    for (const ScheduledChunk& chunk : plan.chunks) {
      EXPECT_EQ(chunk.first, chunk.task->tokens_launched);
      add(name_of(chunk.task) + "+" + std::to_string(chunk.tokens) + (chunk.samples ? "*" : ""));
    }
    for (const Admission& admission : plan.admit) {
      add(">" + name_of(admission.task) + "+" + std::to_string(admission.tokens_max));
    }
    for (const SequenceTask* const task : plan.load) add(name_of(task) + "~");
    for (const Deferred& deferred : plan.deferred) {
      add(name_of(deferred.task) + "?" + std::string(wait_reason_name(deferred.reason)) +
          (deferred.passes > 0 ? "/" + std::to_string(deferred.passes) : ""));
    }
    return words;
  }

  SchedulerOptions options_;
  kv::Cache cache_;
  BlockDemand demand_;
  TenantTable tenants_;
  WaitingQueue waiting_;
  std::vector<std::unique_ptr<SequenceTask>> tasks_;
  std::string names_;
  std::vector<SequenceTask*> running_;
  std::vector<ClassUse> classes_;
  SchedulerView view_;
};

}  // namespace

std::string plan_of(const PlannerCase& row) { return ViewOnATable(row).plan(); }

std::uint64_t tokens_left_of(const PlannerCase& row) { return ViewOnATable(row).tokens_left(); }

}  // namespace pagoda::sched
