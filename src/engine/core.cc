#include "engine/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "engine/explain_request.h"
#include "engine/page_drops.h"
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
      meters_(tenants, options.tiers.tokens_per_second),
      drafting_(
          {options.speculation, options.drafter, options.draft_model, options.limits.vocabulary},
          cache, scheduler_, runner, meters_, clock),
      assembler_(cache.options().groups.size(), options.scheduler.sequences_max) {
  if (!options.tiers.stores.empty() && cache.options().share) {
    tiers_ = std::make_unique<Tiers>(options_.tiers, cache_, scheduler_, meters_.prompt_rate());
  }
}

Core::~Core() {
  while (scheduler_.launches_running() > 0) collect();
  while (!requests_.empty()) cancel(requests_.begin()->first);
  if (tiers_) prefetches_.drop_all(*tiers_);
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
  if (request.action != CacheAction::kNone) {
    tenants_.charge_minute(request.tenant, request.prompt.size());
  }
  if (request.action == CacheAction::kDemote) return demote(request, *open->sink);
  if (request.action == CacheAction::kPrefetch && !tiers_) {
    return tell_cached(request, *open->sink, FinishReason::kStop);
  }
  SamplingState sampling(request.sampling, request.prompt,
                         StopCriteria(request.end, options_.end_tokens));
  if (request.constraint) sampling.constrain(*request.constraint);
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    auto seq = std::make_unique<OpenSequence>(sampling.fork(i));
    seq->request = open.get();
    seq->scope = scope_of(request);
    seq->drops = page_drops_of(request, options_.limits, limits, cache_.options().block_tokens);
    seq->scope->counts_lookup = !computes_whole_prompt(request);
    seq->scope->is_use = request.action == CacheAction::kNone;
    seq->index = i;
    seq->prompt_tokens = request.prompt.size();
    seq->tokens_max = tokens_max;
    seq->priority = request.priority;
    seq->tenant = request.tenant;
    if (request.timeout_ns > 0) seq->deadline_ns = open->arrived_ns + request.timeout_ns;
    open->sequences.push_back(std::move(seq));
  }
  drafting_.open(*open, request);
  OpenSequence& first = *open->sequences.front();
  first.tokens = std::move(request.prompt);
  first.sequence_count = request.sampling.n;
  first.compute_whole_prompt = computes_whole_prompt(request);
  // Nothing predicts the first token of a prompt.
  first.scores_launched = std::max<std::uint64_t>(request.prompt_logprobs_start, 1) - 1;
  first.scores_taken = first.scores_launched;
  first.block_hashes = std::move(request.block_hashes);
  open->sequences_left = request.sampling.n;
  open->asked = std::move(request);
  if (tiers_ && open->asked.origin) tiers_->expect(first, *open->asked.origin, open->arrived_ns);
  if (open->asked.action == CacheAction::kPrefetch) {
    return prefetches_.begin(std::move(open), *tiers_);
  }
  scheduler_.enqueue(first);
  if (tiers_) tiers_->wait(first, open->arrived_ns);
  requests_.emplace(id, std::move(open));
}

// The request is over: says what of its prompt is in the pool now.
void Core::tell_cached(const Request& request, ReplySink& sink, FinishReason reason,
                       const SequenceRecord& known) {
  SequenceRecord record = known;
  record.prompt_tokens = request.prompt.size();
  record.prompt_tokens_cached = cache_.match(scope_of(request), request.prompt).tokens;
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  sink.on_finish(0, reason, record, {});
}

void Core::demote(const Request& request, ReplySink& sink) {
  const kv::CacheScope scope = scope_of(request);
  const std::uint64_t nodes =
      cache_.demote(scope, cache_.match(scope, request.prompt, kv::MatchEnd::kWholeBlock));
  SequenceRecord record;
  record.blocks_demoted = nodes * cache_.tree().groups();
  tell_cached(request, sink, FinishReason::kStop, record);
}

void Core::end_prefetches() {
  for (Prefetches::Ended& ended : prefetches_.take_ended(*tiers_, clock_.now_ns())) {
    Request& asked = ended.prefetch->asked;
    asked.prompt = std::move(ended.prefetch->sequences.front()->tokens);
    SequenceRecord record;
    record.load = ended.load;
    tell_cached(asked, *ended.prefetch->sink, ended.reason, record);
  }
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
                                                kv::OwnerId(request.tenant.value()),
                                                policy_of(request, options_.limits)))
                             .value();
  scope.public_tokens = request.public_tokens;
  if (const auto drops = page_drops_of(request, options_.limits, tenants_[request.tenant].limits,
                                       cache_.options().block_tokens)) {
    scope.tokens_found_max = drops->policy.first_observed(drops->prompt_tokens);
  }
  scope.priority = request.priority;
  scope.session = request.session;
  scope.first_turn_tokens = request.first_turn_tokens;
  return scope;
}

// Explains the request as if it ran now.
void Core::explain(const Request& request, ReplySink& sink) {
  const kv::CacheScope scope = scope_of(request);
  SequenceRecord record =
      explain_request(request, scope, {cache_, scheduler_, meters_, tiers_.get()});
  record.arrived_ns = record.finished_ns = clock_.now_ns();
  for (std::uint32_t i = 0; i < request.sampling.n; ++i) {
    sink.on_finish(i, FinishReason::kStop, record, {});
  }
}

// Checks limits that may hold again later.
Status Core::admit(const Request& request) {
  if (scheduler_.tasks_waiting() >= options_.requests_queued_max) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} waiting, the limit is {}",
                             scheduler_.tasks_waiting() == 1
                                 ? "1 request is"
                                 : fmt::format("{} requests are", scheduler_.tasks_waiting()),
                             options_.requests_queued_max)};
  }
  if (request.action == CacheAction::kPrefetch)
    RETURN_IF_ERROR(prefetches_.admit(request, tenants_));
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
  prefetches_.cancel(id);
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
  cache_.close_idle_session();
  const bool offloads = offload_closed();
  end_overdue();
  pause_unread();  // who is resumed asks the tiers before the next plan
  move_pages();
  const bool launched = launch();
  const std::uint64_t ahead = launched ? runner_.launches_ahead() : 0;
  const bool collects = scheduler_.launches_running() > ahead;
  if (collects) collect();
  forget_finished();
  return launched || collects || offloads;
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

std::vector<kv::LeasedPage> Core::lease_pages(std::span<const kv::PageKey> keys) {
  return tiers_ ? tiers_->leases().lease(keys) : std::vector<kv::LeasedPage>();
}

void Core::end_leases(std::span<const kv::BlockId> blocks) {
  if (tiers_) tiers_->leases().end(blocks);
}

// A session that is resumed finds its pages in a tier. The writer gets what its queues have room
// for, and no more in a step than others do not notice.
bool Core::offload_closed() {
  constexpr std::size_t kNodesAtOnce = 64;
  if (!cache_.sessions().has_closed()) return false;
  const std::size_t room = tiers_ ? tiers_->writer().room() : kNodesAtOnce;
  const std::vector<kv::NodeId> nodes = cache_.take_closed(std::min(room, kNodesAtOnce));
  if (tiers_) tiers_->writer().used(nodes);
  return !nodes.empty();
}

Result<std::uint64_t> Core::close_session(const SessionName& name) {
  ASSIGN_OR_RETURN(const kv::CacheScope scope, cache_.scope(options_.space, name.cache_salt, {},
                                                            kv::OwnerId(name.tenant.value())));
  const std::optional<std::uint64_t> nodes = cache_.close_session(scope, name.session);
  if (!nodes) return Error{ErrorCode::kNotFound, "the session is not open"};
  return *nodes * cache_.tree().groups();
}

void Core::reset(std::optional<TenantId> tenant) {
  cache_.advance_time(clock_.now_ns());
  forget_session_prompts(tenant);
  drafting_.forget(tenant);
  cache_.clear(tenant ? std::optional(kv::OwnerId(tenant->value())) : std::nullopt);
}

void Core::forget_session_prompts(std::optional<TenantId> tenant) {
  tenant ? session_prompts_.forget(*tenant) : session_prompts_.forget_all();
}

std::uint64_t Core::begin_removal(kv::OwnerId owner) {
  if (tiers_) tiers_->writer().forbid(owner);
  if (tiers_) tiers_->leases().revoke(owner);
  session_prompts_.forget(TenantId(owner.value()));
  drafting_.retire(TenantId(owner.value()));
  return cache_.retire(owner);
}

bool Core::removal_may_go_on(kv::OwnerId owner) const {
  return !tiers_ || (!tiers_->writer().is_writing(owner) && !tiers_->leases().has_leased(owner));
}

std::uint64_t Core::end_removal(kv::OwnerId owner) {
  if (tiers_) tiers_->writer().allow(owner);
  session_prompts_.forget(TenantId(owner.value()));
  drafting_.retire(TenantId(owner.value()));
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
    const bool stays = is_unread(task);
    sequences_paused_ += stays ? 1 : 0;
    if (!stays) scheduler_.resume(task);
  }
}

// The prompt is computed: its session may be resumed with it.
void Core::remember_prompt(const OpenSequence& seq) {
  const Request& asked = seq.request->asked;
  if (asked.session.empty()) return;
  const auto prompt = std::span(seq.tokens).first(seq.prompt_tokens);
  session_prompts_.note({asked.tenant, asked.cache_salt, asked.session},
                        {.tokens = {prompt.begin(), prompt.end()},
                         .public_tokens = asked.public_tokens,
                         .first_turn_tokens = asked.first_turn_tokens,
                         .kv_policy = asked.kv_policy});
}

bool Core::launch() {
  if (!scheduler_.has_work() || drafting_.awaits_tokens()) return false;
  const std::int64_t began = clock_.now_ns();
  const sched::Plan& plan = scheduler_.plan();
  meters_.note_preemptions(plan.preempt.size());
  sched::Step* const step = scheduler_.reserve(plan);
  // The pages of loads that were given room come while the step is computed.
  if (tiers_ && !plan.load.empty()) tiers_->poll(began);
  if (step == nullptr) return !plan.preempt.empty() || !plan.load.empty();
  drafting_.add_drafts(*step, plan);
  scheduler_.predict(*step);
  const Launch launch = assembler_.assemble(*step);
  const std::int64_t planned = clock_.now_ns();
  for (sched::SequenceTask* const task : step->admitted) {
    OpenSequence& seq = static_cast<OpenSequence&>(*task);
    if (seq.started_ns == 0) {
      seq.started_ns = planned;
      remember_prompt(seq);
      if (tiers_) tiers_->explain_start(seq);
      meters_.note_start(seq);
    }
    if (tiers_) tiers_->start(*task, planned);
  }
  step->launched_ns = planned;
  plan_seconds_ = seconds_between(began, planned) - drafting_.model_seconds();
  runner_.launch(launch);
  drafting_.catch_up(*step);
  meters_.note_phase(StepPhase::kPlan, began, planned);
  meters_.note_phase(StepPhase::kLaunch, planned, clock_.now_ns());
  meters_.note_launch(assembler_.tokens(), launch.rows.size());
  return true;
}

}  // namespace pagoda::engine
