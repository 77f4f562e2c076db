#include "engine/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace pagoda::engine {

Core::Core(const CoreOptions& options, kv::Cache& cache, sched::TenantTable& tenants,
           Runner& runner, const Clock& clock)
    : options_(options),
      cache_(cache),
      tenants_(tenants),
      runner_(runner),
      clock_(clock),
      scheduler_(options.scheduler, cache, tenants, runner.launches_ahead()) {
  const std::size_t sequences = options.scheduler.sequences_max;
  rows_.reserve(sequences);
  samples_.reserve(sequences);
  tables_.reserve(sequences * cache.slice_reaches().size());
}

Core::~Core() {
  while (scheduler_.launches_running() > 0) collect();
  while (!requests_.empty()) cancel(requests_.begin()->first);
}

void Core::submit(RequestId id, Request request, std::shared_ptr<ReplySink> sink) {
  auto open = std::make_unique<OpenRequest>();
  open->id = id;
  open->arrived_ns = clock_.now_ns();
  open->sink = std::move(sink);
  const sched::TenantLimits& limits = tenants_[request.tenant].limits;
  const std::uint64_t tokens_max = context_of(request, options_.limits, limits);
  Status admitted = admit(request);
  if (!admitted.ok()) {
    ++counters_.requests_refused;
    AnswerRecord record;
    record.prompt_tokens = request.prompt.size();
    record.arrived_ns = open->arrived_ns;
    record.finished_ns = open->arrived_ns;
    for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
      open->sink->on_finish(i, FinishReason::kRefused, record, admitted.error().message);
    }
    return;
  }
  const SamplingState sampling(request.sampling, request.prompt,
                               EndRule(request.end, options_.end_tokens));
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    auto answer = std::make_unique<Answer>(sampling.fork(i));
    answer->request = open.get();
    answer->domain = std::move(
        cache_.domain(options_.space, request.cache_salt, {}, kv::OwnerId(request.tenant.value()))
            .value());
    answer->domain->public_tokens = request.public_tokens;
    answer->domain->priority = request.priority;
    answer->index = i;
    answer->prompt_tokens = request.prompt.size();
    answer->tokens_max = tokens_max;
    answer->priority = request.priority;
    answer->tenant = request.tenant;
    if (request.timeout_ns > 0) answer->deadline_ns = open->arrived_ns + request.timeout_ns;
    open->answers.push_back(std::move(answer));
  }
  Answer& first = *open->answers.front();
  first.tokens = std::move(request.prompt);
  first.answers = request.sampling.n;
  first.compute_whole_prompt = request.sampling.prompt_logprobs.has_value();
  open->answers_left = request.sampling.n;
  open->asked = std::move(request);
  scheduler_.enqueue(first);
  requests_.emplace(id, std::move(open));
}

// Limits that time heals.
Status Core::admit(const Request& request) {
  if (scheduler_.tasks_waiting() >= options_.requests_queued_max) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} requests are waiting, the limit is {}", scheduler_.tasks_waiting(),
                             options_.requests_queued_max)};
  }
  return tenants_.admit(request.tenant, request.prompt.size(), clock_.now_ns());
}

void Core::cancel(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  OpenRequest& request = *found->second;
  end_all(request, FinishReason::kCancelled, {});
}

// Ends every answer that has not ended. Forks that were not born yet end with their leader.
void Core::end_all(OpenRequest& request, FinishReason reason, const std::string& message) {
  for (const auto& answer : request.answers) {
    if (answer->state != sched::TaskState::kFinished) finish(*answer, reason, message);
  }
}

bool Core::step() {
  cache_.advance_time(clock_.now_ns());
  end_overdue();
  const bool launched = launch();
  const std::uint64_t ahead = launched ? runner_.launches_ahead() : 0;
  const bool collects = scheduler_.launches_running() > ahead;
  if (collects) collect();
  forget_finished();
  return launched || collects;
}

void Core::end_overdue() {
  while (sched::Task* const task = scheduler_.expired(clock_.now_ns())) {
    end_all(*static_cast<Answer*>(task)->request, FinishReason::kDeadline, {});
  }
}

bool Core::launch() {
  if (!scheduler_.has_work()) return false;
  const sched::Plan& plan = scheduler_.plan();
  const sched::Step* const step = scheduler_.reserve(plan);
  if (step == nullptr) return !plan.preempt.empty();
  const std::int64_t now = clock_.now_ns();
  for (sched::Task* const task : step->admitted) {
    Answer& answer = static_cast<Answer&>(*task);
    if (answer.started_ns == 0) answer.started_ns = now;
  }
  assemble(*step);
  runner_.launch({step->copies, rows_, samples_, scores_});
  ++counters_.steps;
  counters_.rows_computed += row_count_;
  return true;
}

void Core::assemble(const sched::Step& step) {
  rows_.clear();
  samples_.clear();
  scores_.clear();
  tables_.clear();
  // Tables are pointed into while they are collected.
  tables_.reserve(step.rows.size() * cache_.slice_reaches().size());
  row_count_ = 0;
  for (const sched::PlannedRows& rows : step.rows) assemble_rows(rows);
}

void Core::assemble_rows(const sched::PlannedRows& planned) {
  Answer& answer = static_cast<Answer&>(*planned.task);
  const std::size_t first_table = tables_.size();
  const std::size_t slices = cache_.slice_reaches().size();
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    tables_.push_back(answer.sequence->table(slice).data());
  }
  const std::uint64_t known =
      std::min<std::uint64_t>(planned.rows, answer.tokens.size() - planned.first);
  rows_.push_back({.place = &answer,
                   .rows = planned.rows,
                   .first_position = planned.first,
                   .tokens = std::span(answer.tokens).subspan(planned.first, known),
                   .tables = std::span(tables_).subspan(first_table, slices)});
  const auto& scored = answer.request->asked.sampling.prompt_logprobs;
  if (scored && answer.index == 0) {
    for (std::uint32_t i = 0; i < planned.rows; ++i) {
      const std::uint64_t next = planned.first + i + 1;
      if (next >= answer.prompt_tokens || next <= answer.scores_launched) continue;
      scores_.push_back({row_count_ + i, answer.tokens[next], *scored});
      answer.scores_launched = next;
    }
  }
  if (planned.samples) {
    for (std::uint32_t i = 0; i < answer.answers; ++i) {
      Answer& sampled = *answer.request->answers[answer.index + i];
      samples_.push_back({.place = &sampled,
                          .row = row_count_ + planned.rows - 1,
                          .position = planned.first + planned.rows,
                          .sampling = &sampled.sampling});
    }
  }
  row_count_ += planned.rows;
}

}  // namespace pagoda::engine
