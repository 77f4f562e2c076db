#include "engine/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "engine/tiers/tiers.h"

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
  if (!options.tiers.stores.empty() && cache.shares()) {
    tiers_ = std::make_unique<Tiers>(options_.tiers, cache_, scheduler_);
  }
}

Core::~Core() {
  while (scheduler_.launches_running() > 0) collect();
  while (!requests_.empty()) cancel(requests_.begin()->first);
}

void Core::submit(RequestId id, Request request, std::shared_ptr<ReplySink> sink) {
  if (request.explain_only) return explain(request, *sink);
  if (lost_) return refuse(request, *sink, FinishReason::kLost, lost_->message);
  auto open = std::make_unique<OpenRequest>();
  open->id = id;
  open->arrived_ns = clock_.now_ns();
  open->sink = std::move(sink);
  const sched::TenantLimits& limits = tenants_[request.tenant].limits;
  const std::uint64_t tokens_max = context_of(request, options_.limits, limits);
  Status admitted = admit(request);
  if (admitted.ok()) admitted = fits(request, tokens_max);
  if (!admitted.ok()) {
    return refuse(request, *open->sink, FinishReason::kRefused, admitted.error().message);
  }
  const SamplingState sampling(request.sampling, request.prompt,
                               EndRule(request.end, options_.end_tokens));
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    auto answer = std::make_unique<Answer>(sampling.fork(i));
    answer->request = open.get();
    answer->domain = domain_of(request);
    answer->domain->asks = !request.sampling.prompt_logprobs.has_value();
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
  first.names = std::move(request.names);
  open->answers_left = request.sampling.n;
  open->asked = std::move(request);
  scheduler_.enqueue(first);
  if (tiers_) tiers_->wait(first, open->arrived_ns);
  requests_.emplace(id, std::move(open));
}

// At the door.
void Core::refuse(const Request& request, ReplySink& sink, FinishReason reason,
                  const std::string& message) {
  ++counters_.requests_refused;
  ++tenants_[request.tenant].use.requests_refused;
  counters_.answers_finished[static_cast<std::size_t>(reason)] += request.sampling.n;
  AnswerRecord record;
  record.prompt_tokens = request.prompt.size();
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    sink.on_finish(i, reason, record, message);
  }
}

kv::Domain Core::domain_of(const Request& request) {
  kv::Domain domain = std::move(cache_.domain(options_.space, request.cache_salt, {},
                                              kv::OwnerId(request.tenant.value())))
                          .value();
  domain.public_tokens = request.public_tokens;
  domain.priority = request.priority;
  return domain;
}

// As if it ran now.
void Core::explain(const Request& request, ReplySink& sink) {
  const kv::Domain domain = domain_of(request);
  AnswerRecord record;
  record.prompt_tokens = request.prompt.size();
  record.explanation =
      scheduler_.explain(domain, request.prompt, cache_.match(domain, request.prompt),
                         request.sampling.prompt_logprobs.has_value());
  if (tiers_ && !request.sampling.prompt_logprobs) {
    tiers_->explain(request.prompt, request.names, *record.explanation);
  }
  record.prompt_tokens_cached = record.explanation->tokens_matched;
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    sink.on_finish(i, FinishReason::kStop, record, {});
  }
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

// Limits that were lowered after check_request().
Status Core::fits(const Request& request, std::uint64_t tokens_max) {
  if (request.prompt.size() < tokens_max) return ok_status();
  return Error{ErrorCode::kOutOfRange,
               fmt::format("the prompt has {} tokens, the context of tenant {} holds {} including "
                           "at least one answer token",
                           request.prompt.size(), tenants_[request.tenant].name, tokens_max)};
}

void Core::cancel(RequestId id, FinishReason reason) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  OpenRequest& request = *found->second;
  end_all(request, reason, {});
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
  move_pages();
  const bool launched = launch();
  const std::uint64_t ahead = launched ? runner_.launches_ahead() : 0;
  const bool collects = scheduler_.launches_running() > ahead;
  if (collects) collect();
  forget_finished();
  return launched || collects;
}

void Core::set_space(const kv::SpaceId& space, bool is_sure) {
  if (tiers_) tiers_->set_space(space, is_sure);
}

// Blocks that a launch or a store still has in use cannot leave yet; under another namespace nobody
// finds them any more.
void Core::drop_space(const std::string& why) {
  if (!tiers_ || !tiers_->drop_space()) return;
  while (!requests_.empty()) end_all(*requests_.begin()->second, FinishReason::kError, why);
  options_.space += '\'';
  cache_.clear();
}

bool Core::move_pages() {
  const std::int64_t now_ns = clock_.now_ns();
  scheduler_.take_requeued([&](sched::Task& task) {
    if (tiers_) tiers_->wait(task, now_ns);
  });
  if (!tiers_) return false;
  tiers_->poll(now_ns);
  return !tiers_->is_idle();
}

std::int64_t Core::next_look_ns() const { return tiers_->next_look_ns(clock_.now_ns()); }

bool Core::awaits_pages() const { return tiers_ && !tiers_->is_idle(); }

void Core::keep_all() {
  if (tiers_) tiers_->keep_all();
}

std::uint64_t Core::begin_removal(kv::OwnerId owner) {
  if (tiers_) tiers_->writer().forbid(owner);
  return cache_.retire(owner);
}

bool Core::removal_may_go_on(kv::OwnerId owner) const {
  return !tiers_ || !tiers_->writer().is_writing(owner);
}

std::uint64_t Core::end_removal(kv::OwnerId owner) {
  if (tiers_) tiers_->writer().allow(owner);
  return cache_.retire(owner);
}

void Core::end_overdue() {
  while (sched::Task* const task = scheduler_.expired(clock_.now_ns())) {
    end_all(*static_cast<Answer*>(task)->request, FinishReason::kDeadline, {});
  }
}

void Core::pause_unread() {
  answers_paused_ = 0;
  for (sched::Task* const task : scheduler_.running()) {
    task->paused = !static_cast<Answer*>(task)->request->sink->wants_more();
    answers_paused_ += task->paused ? 1 : 0;
  }
}

bool Core::launch() {
  pause_unread();
  if (!scheduler_.has_work()) return false;
  const std::int64_t began = clock_.now_ns();
  const sched::Plan& plan = scheduler_.plan();
  counters_.preemptions += plan.preempt.size();
  sched::Step* const step = scheduler_.reserve(plan);
  // What was given room comes while the step is computed.
  if (tiers_ && !plan.load.empty()) tiers_->poll(began);
  if (step == nullptr) return !plan.preempt.empty() || !plan.load.empty();
  assemble(*step);
  const std::int64_t planned = clock_.now_ns();
  for (sched::Task* const task : step->admitted) {
    note_start(static_cast<Answer&>(*task), planned);
    if (tiers_) tiers_->start(*task, planned);
  }
  step->launched_ns = planned;
  runner_.launch({step->copies, rows_, samples_, scores_});
  distributions_.observe_phase(StepPhase::kPlan, began, planned);
  distributions_.observe_phase(StepPhase::kLaunch, planned, clock_.now_ns());
  distributions_.step_rows.observe(row_count_);
  ++counters_.steps;
  counters_.rows_computed += row_count_;
  counters_.answers_stepped += rows_.size();
  return true;
}

// A request runs for the first time: what the cache had for it is known.
void Core::note_start(Answer& answer, std::int64_t now_ns) {
  if (answer.started_ns != 0) return;
  answer.started_ns = now_ns;
  counters_.misses.add(answer.explanation);
  if (answer.compute_whole_prompt) return;
  LookupCounts& lookups = counters_.lookups;
  lookups.tokens_asked += answer.prompt_tokens;
  lookups.tokens_found += answer.tokens_cached;
  const bool whole = answer.tokens_cached + 1 == answer.prompt_tokens;
  ++(answer.tokens_cached == 0 ? lookups.none : whole ? lookups.whole : lookups.part);
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
