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
      scheduler_(options.scheduler, cache, tenants, runner.launches_ahead()),
      meters_(tenants),
      assembler_(cache.options().groups.size(), options.scheduler.sequences_max) {
  if (!options.tiers.stores.empty() && cache.options().share) {
    tiers_ = std::make_unique<Tiers>(options_.tiers, cache_, scheduler_);
  }
}

Core::~Core() {
  while (scheduler_.launches_running() > 0) collect();
  while (!requests_.empty()) cancel(requests_.begin()->first);
  for (const auto& prefetch : prefetches_) tiers_->end(*prefetch->sequences.front());
}

void Core::submit(RequestId id, Request request, std::shared_ptr<ReplySink> sink) {
  if (request.explain_only) return explain(request, *sink);
  if (request.action == CacheAction::kDemote) return demote(request, *sink);
  if (lost_) return refuse(request, *sink, FinishReason::kLost, lost_->message);
  auto open = std::make_unique<OpenRequest>();
  open->id = id;
  open->arrived_ns = clock_.now_ns();
  open->sink = std::move(sink);
  const sched::TenantLimits& limits = tenants_[request.tenant].limits;
  const std::uint64_t tokens_max = context_of(request, options_.limits, limits);
  Status admitted = admit(request);
  if (admitted.ok()) admitted = fits(request, tokens_max);
  if (admitted.ok() && request.action == CacheAction::kPrefetch && !tiers_) {
    return tell_cached(request, *open->sink);
  }
  if (!admitted.ok()) {
    return refuse(request, *open->sink, FinishReason::kRefused, admitted.error().message);
  }
  SamplingState sampling(request.sampling, request.prompt,
                         StopCriteria(request.end, options_.end_tokens));
  if (request.constraint) {
    sampling.constrain(*request.constraint);
  }
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    auto seq = std::make_unique<OpenSequence>(sampling.fork(i));
    seq->request = open.get();
    seq->scope = scope_of(request);
    seq->scope->counts_lookup = !computes_whole_prompt(request);
    seq->index = i;
    seq->prompt_tokens = request.prompt.size();
    seq->tokens_max = tokens_max;
    seq->priority = request.priority;
    seq->tenant = request.tenant;
    if (request.timeout_ns > 0) seq->deadline_ns = open->arrived_ns + request.timeout_ns;
    open->sequences.push_back(std::move(seq));
  }
  OpenSequence& first = *open->sequences.front();
  first.tokens = std::move(request.prompt);
  first.sequence_count = request.sampling.n;
  first.compute_whole_prompt = computes_whole_prompt(request);
  first.block_hashes = std::move(request.block_hashes);
  open->sequences_left = request.sampling.n;
  open->asked = std::move(request);
  if (open->asked.action == CacheAction::kPrefetch) {
    tiers_->wait(first, open->arrived_ns);
    prefetches_.push_back(std::move(open));
    return;
  }
  scheduler_.enqueue(first);
  if (tiers_) tiers_->wait(first, open->arrived_ns);
  requests_.emplace(id, std::move(open));
}

// The request is over: what of its prompt is in the pool now.
void Core::tell_cached(const Request& request, ReplySink& sink, const LoadRecord& load,
                       std::uint64_t blocks_demoted) {
  SequenceRecord record;
  record.prompt_tokens = request.prompt.size();
  record.prompt_tokens_cached = cache_.match(scope_of(request), request.prompt).tokens;
  record.load = load;
  record.blocks_demoted = blocks_demoted;
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  sink.on_finish(0, FinishReason::kStop, record, {});
}

void Core::demote(const Request& request, ReplySink& sink) {
  const kv::CacheScope scope = scope_of(request);
  const std::vector<kv::NodeId> nodes =
      cache_.demote(cache_.match(scope, request.prompt, kv::MatchEnd::kWholeBlock));
  offload(nodes);
  tell_cached(request, sink, {}, nodes.size() * cache_.tree().groups());
}

// A prefetch is over when every page that comes has come, or there was no room.
void Core::end_prefetches() {
  constexpr std::int64_t kWaitMaxNs = std::int64_t{60} * 1'000'000'000;
  const std::int64_t now_ns = clock_.now_ns();
  std::erase_if(prefetches_, [&](const std::unique_ptr<OpenRequest>& prefetch) {
    OpenSequence& seq = *prefetch->sequences.front();
    const bool is_over = prefetch->is_cancelled || tiers_->is_settled(seq) ||
                         now_ns - prefetch->arrived_ns > kWaitMaxNs;
    if (!is_over) return false;
    const LoadRecord load = tiers_->end(seq);
    seq.state = sched::TaskState::kFinished;
    if (prefetch->is_cancelled) return true;
    Request asked = prefetch->asked;
    asked.prompt = std::move(seq.tokens);
    tell_cached(asked, *prefetch->sink, load);
    return true;
  });
}

// Refuses a request before any of its sequences becomes a task.
void Core::refuse(const Request& request, ReplySink& sink, FinishReason reason,
                  const std::string& message) {
  meters_.note_refused(request, reason);
  SequenceRecord record;
  record.prompt_tokens = request.prompt.size();
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    sink.on_finish(i, reason, record, message);
  }
}

kv::CacheScope Core::scope_of(const Request& request) {
  kv::CacheScope scope = std::move(cache_.scope(options_.space, request.cache_salt, {},
                                                kv::OwnerId(request.tenant.value())))
                             .value();
  scope.public_tokens = request.public_tokens;
  scope.priority = request.priority;
  scope.session = request.session;
  scope.first_turn_tokens = request.first_turn_tokens;
  return scope;
}

// Explains the request as if it ran now.
void Core::explain(const Request& request, ReplySink& sink) {
  const kv::CacheScope scope = scope_of(request);
  SequenceRecord record;
  record.prompt_tokens = request.prompt.size();
  record.explanation =
      scheduler_.explain(scope, request.prompt, cache_.match(scope, request.prompt),
                         request.sampling.prompt_logprobs.has_value());
  if (tiers_ && !request.sampling.prompt_logprobs) {
    tiers_->explain(request.prompt, request.block_hashes, *record.explanation);
  }
  record.prompt_tokens_cached = record.explanation->tokens_matched;
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    sink.on_finish(i, FinishReason::kStop, record, {});
  }
}

// Checks limits that may hold again later.
Status Core::admit(const Request& request) {
  if (scheduler_.tasks_waiting() >= options_.requests_queued_max) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} requests are waiting, the limit is {}", scheduler_.tasks_waiting(),
                             options_.requests_queued_max)};
  }
  constexpr std::size_t kPrefetchesMax = 256;
  if (request.action == CacheAction::kPrefetch && prefetches_.size() >= kPrefetchesMax) {
    return Error{ErrorCode::kExhausted, fmt::format("{} prompts are being fetched, the limit is {}",
                                                    prefetches_.size(), kPrefetchesMax)};
  }
  // One of several tenants may have as many waiting as places are left: whoever comes finds one.
  const sched::Tenant& tenant = tenants_[request.tenant];
  const std::uint64_t left = options_.requests_queued_max - scheduler_.tasks_waiting();
  if (tenants_.size() > 1 && tenant.requests_queued > left) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("tenant {} has {} requests waiting; places left for all: {}",
                             tenant.name, tenant.requests_queued, left)};
  }
  return tenants_.admit(request.tenant, request.prompt.size(), clock_.now_ns());
}

// Checks limits that were lowered after check_request().
Status Core::fits(const Request& request, std::uint64_t tokens_max) {
  if (request.prompt.size() < tokens_max) return ok_status();
  return Error{ErrorCode::kOutOfRange,
               fmt::format("the prompt has {} tokens, the context of tenant {} holds {} including "
                           "at least one generated token",
                           request.prompt.size(), tenants_[request.tenant].name, tokens_max)};
}

void Core::cancel(RequestId id, FinishReason reason) {
  for (const auto& prefetch : prefetches_) {
    if (prefetch->id == id) prefetch->is_cancelled = true;
  }
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  OpenRequest& request = *found->second;
  end_all(request, reason, {});
}

// Ends every sequence that has not ended. Forks that were not born yet end with their leader.
void Core::end_all(OpenRequest& request, FinishReason reason, const std::string& message) {
  for (const auto& seq : request.sequences) {
    if (seq->state != sched::TaskState::kFinished) finish(*seq, reason, message);
  }
}

bool Core::step() {
  cache_.advance_time(clock_.now_ns());
  if (const auto nodes = cache_.close_idle_session()) offload(*nodes);
  end_overdue();
  pause_unread();  // who is resumed asks the tiers before the next plan
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

// Blocks that a launch or a store still uses cannot leave yet; under another namespace no request
// finds them any more.
void Core::drop_space(const std::string& why) {
  if (!tiers_ || !tiers_->drop_space()) return;
  while (!requests_.empty()) end_all(*requests_.begin()->second, FinishReason::kError, why);
  options_.space += '\'';
  cache_.clear();
}

bool Core::move_pages() {
  const std::int64_t now_ns = clock_.now_ns();
  scheduler_.take_requeued([&](sched::SequenceTask& task) {
    if (tiers_) tiers_->wait(task, now_ns);
  });
  if (!tiers_) return false;
  tiers_->poll(now_ns);
  end_prefetches();
  return !tiers_->is_idle();
}

std::int64_t Core::next_look_ns() const { return tiers_->next_look_ns(clock_.now_ns()); }

bool Core::awaits_pages() const { return tiers_ && !tiers_->is_idle(); }

void Core::offload_all() {
  if (tiers_) tiers_->offload_all();
}

// A session that is resumed finds its pages in a tier.
void Core::offload(std::vector<kv::NodeId> nodes) {
  if (!tiers_) return;
  std::reverse(nodes.begin(), nodes.end());  // a chain is of use from its beginning on
  tiers_->writer().used(nodes);
}

std::optional<std::uint64_t> Core::close_session(TenantId tenant, const std::string& cache_salt,
                                                 const std::string& session) {
  const kv::CacheScope scope =
      std::move(cache_.scope(options_.space, cache_salt, {}, kv::OwnerId(tenant.value()))).value();
  const auto nodes = cache_.close_session(scope, session);
  if (!nodes) return std::nullopt;
  offload(*nodes);
  return nodes->size();
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
  while (sched::SequenceTask* const task = scheduler_.expired(clock_.now_ns())) {
    end_all(*static_cast<OpenSequence*>(task)->request, FinishReason::kDeadline, {});
  }
}

void Core::pause_unread() {
  const auto is_unread = [](const sched::SequenceTask& task) {
    return !static_cast<const OpenSequence&>(task).request->sink->wants_more();
  };
  sequences_paused_ = 0;
  for (sched::SequenceTask* const task : scheduler_.running()) {
    task->paused = is_unread(*task);
    sequences_paused_ += task->paused ? 1 : 0;
  }
  for (std::size_t i = scheduler_.parked().size(); i-- > 0;) {
    sched::SequenceTask& task = *scheduler_.parked()[i];
    if (is_unread(task)) {
      ++sequences_paused_;
    } else {
      scheduler_.resume(task);
    }
  }
}

bool Core::launch() {
  if (!scheduler_.has_work()) return false;
  const std::int64_t began = clock_.now_ns();
  const sched::Plan& plan = scheduler_.plan();
  meters_.note_preemptions(plan.preempt.size());
  sched::Step* const step = scheduler_.reserve(plan);
  // The pages of loads that were given room come while the step is computed.
  if (tiers_ && !plan.load.empty()) tiers_->poll(began);
  if (step == nullptr) return !plan.preempt.empty() || !plan.load.empty();
  const Launch launch = assembler_.assemble(*step);
  const std::int64_t planned = clock_.now_ns();
  for (sched::SequenceTask* const task : step->admitted) {
    OpenSequence& seq = static_cast<OpenSequence&>(*task);
    if (seq.started_ns == 0) {
      seq.started_ns = planned;
      if (tiers_) tiers_->explain_start(seq);
      meters_.note_start(seq);
    }
    if (tiers_) tiers_->start(*task, planned);
  }
  step->launched_ns = planned;
  runner_.launch(launch);
  meters_.note_phase(StepPhase::kPlan, began, planned);
  meters_.note_phase(StepPhase::kLaunch, planned, clock_.now_ns());
  meters_.note_launch(assembler_.tokens(), launch.rows.size());
  return true;
}

}  // namespace pagoda::engine
