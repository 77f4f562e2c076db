#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "base/assert.h"
#include "engine/tiers/tiers.h"

namespace pagoda::engine {
namespace {

constexpr std::chrono::milliseconds kPausedLook{50};
constexpr std::chrono::hours kLongSleep{1};
constexpr std::chrono::seconds kDeviceLook{1};
// An empty inbox has room for so many messages.
constexpr std::size_t kInboxMessages = 64;
constexpr std::int64_t kCurvePeriodNs = 1'000'000'000;

sched::TenantTable table_of(const std::vector<NamedTenant>& tenants) {
  sched::TenantTable table;
  for (const NamedTenant& tenant : tenants) table.add(tenant.name, tenant.limits);
  return table;
}

void note_tiers(const Tiers& tiers, Snapshot& now) {
  const Loader& loader = tiers.loader();
  for (std::size_t i = 0; i < loader.stores(); ++i) {
    now.tiers[i] = {.tokens_loaded = now.prompt_tokens_loaded[i],
                    .seconds_reading = loader.seconds_reading(i),
                    .bytes_per_second = loader.bytes_per_second(i).value_or(0)};
  }
  now.tier_blocks_skipped = tiers.writer().blocks_skipped();
}

}  // namespace

Engine::Engine(const EngineOptions& options, kv::Cache& cache, Runner& runner, const Clock& clock)
    : options_(options),
      cache_(cache),
      runner_(runner),
      clock_(clock),
      retain_blocks_max_(cache.options().retain_blocks_max),
      tenants_(table_of(options.tenants)),
      core_(options.core, cache, tenants_, runner, clock),
      removals_(options_.core.tiers, core_, cache, [this] { wake(); }) {
  options_.core.limits.hidden_width = runner.hidden_width();
  inbox_.reserve(kInboxMessages);
  messages_.reserve(kInboxMessages);
  for (std::uint32_t i = 0; i < tenants_.size(); ++i) {
    tenant_limits_.push_back(tenants_[TenantId(i)].limits);
  }
  for (kv::PageStore* const store : options.core.tiers.stores) {
    store->on_report([waker = waker_] {
      {
        const std::lock_guard lock(waker->mutex);
        waker->pages_came = true;
      }
      waker->wake.notify_one();
    });
  }
  publish();
  publish_curve();
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "engine");  // for top and perf
}

Engine::~Engine() {
  {
    const std::lock_guard lock(waker_->mutex);
    stopping_ = true;
    has_messages_ = true;
  }
  waker_->wake.notify_one();
  thread_.join();
}

Result<RequestId> Engine::submit(Request request, std::shared_ptr<ReplySink> sink) {
  ASSIGN_OR_RETURN(const TenantLimits tenant, limits_of(request.tenant));
  RETURN_IF_ERROR(check_request(request, options_.core.limits, tenant));
  const kv::KvPolicy policy = policy_of(request, options_.core.limits);
  if (cache_.hashes().enabled()) {
    thread_local kv::BlockHasher hasher;
    RETURN_IF_ERROR(kv::hash_prompt(hasher, policy.hash_key({}), request.cache_salt,
                                    request.public_tokens, request.prompt,
                                    cache_.options().block_tokens, request.block_hashes));
  }
  const RequestId id(next_id_++);
  {
    const std::lock_guard lock(waker_->mutex);
    if (draining_) return Error{ErrorCode::kExhausted, "the engine is stopping"};
    put(Submission{id, std::move(request), std::move(sink)});
  }
  waker_->wake.notify_one();
  return id;
}

Result<TenantLimits> Engine::limits_of(TenantId tenant) {
  const std::lock_guard lock(waker_->mutex);
  if (tenant.value() < tenant_limits_.size()) return tenant_limits_[tenant.value()];
  return Error{ErrorCode::kInvalidArgument, fmt::format("tenant {} is not one of the {} that exist",
                                                        tenant.value(), tenant_limits_.size())};
}

// Destructors cancel, so that cancel() must not throw. Memory is free again at the latest when the
// engine's thread has taken the messages of the inbox.
void Engine::cancel(RequestId id, FinishReason reason) {
  for (bool is_left = false; !is_left;) {
    try {
      leave(Cancellation{id, reason});
      is_left = true;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void Engine::set_tenants(std::vector<NamedTenant> tenants) {
  {
    const std::lock_guard lock(waker_->mutex);
    ASSERT(tenants.size() + 1 >= tenant_limits_.size(), "no tenant leaves the list");
    tenant_limits_.resize(tenants.size() + 1);
    for (std::size_t i = 0; i < tenants.size(); ++i) tenant_limits_[i + 1] = tenants[i].limits;
    put(std::move(tenants));
  }
  waker_->wake.notify_one();
}

void Engine::wake() {
  leave(std::function<void(kv::Cache&)>([](kv::Cache&) {}));
}

void Engine::post(std::function<void(kv::Cache&)> task) { leave(std::move(task)); }

void Engine::close_session(SessionName name,
                           std::function<void(Result<std::uint64_t> blocks)> done) {
  leave(Order([name = std::move(name), done = std::move(done)](Core& core) {
    done(core.close_session(name));
  }));
}

void Engine::reset(std::optional<TenantId> tenant) {
  core_.forget_session_prompts(tenant);  // whoever asks by session next finds none
  leave(Order([tenant](Core& core) { core.reset(tenant); }));
}

void Engine::set_space(const kv::SpaceId& space, bool is_sure) {
  leave(Order([space, is_sure](Core& core) { core.set_space(space, is_sure); }));
}

void Engine::drop_space(const std::string& why) {
  leave(Order([why](Core& core) { core.drop_space(why); }));
}

bool Engine::offload_all(std::chrono::nanoseconds timeout) {
  std::unique_lock lock(waker_->mutex);
  put(Order([](Core& core) { core.offload_all(); }));
  waker_->wake.notify_one();
  return finished_.wait_for(lock, timeout, [this] { return idle_ && inbox_.empty(); });
}

void Engine::lease(std::vector<kv::PageKey> keys,
                   std::function<void(std::vector<kv::LeasedPage>)> done) {
  leave(Order([keys = std::move(keys), done = std::move(done)](Core& core) {
    done(core.lease_pages(keys));
  }));
}

void Engine::end_leases(std::vector<kv::BlockId> blocks) {
  leave(Order([blocks = std::move(blocks)](Core& core) { core.end_leases(blocks); }));
}

std::vector<TierStats> Engine::tiers() const {
  std::vector<TierStats> stats;
  for (const kv::PageStore* const store : options_.core.tiers.stores) {
    stats.push_back({std::string(store->name()), store->stats(), store->takes_writes()});
  }
  return stats;
}

void Engine::remove_tenant(TenantId tenant, TenantRemovals::Done done) {
  const kv::OwnerId owner(tenant.value());
  post([this, owner, done = std::move(done)](kv::Cache&) { removals_.begin(owner, done); });
}

void Engine::leave(Message&& message) {
  {
    const std::lock_guard lock(waker_->mutex);
    put(std::move(message));
  }
  waker_->wake.notify_one();
}

void Engine::put(Message&& message) {
  inbox_.push_back(std::move(message));
  has_messages_ = true;
}

bool Engine::is_idle() const {
  const std::lock_guard lock(waker_->mutex);
  return idle_ && inbox_.empty();
}

bool Engine::drain(std::chrono::nanoseconds timeout) {
  std::unique_lock lock(waker_->mutex);
  draining_ = true;
  return finished_.wait_for(lock, timeout, [this] { return idle_ && inbox_.empty(); });
}

void Engine::run() {
  bool stood = false;  // the last round found nothing to do
  for (;;) {
    if (has_messages_ && !take_messages()) return;
    if (stood) find_loss();
    answer_questions();
    const bool worked = core_.step() || !questions_.empty();
    const bool moving = !worked && core_.move_pages();
    removals_.poll();
    publish();  // last: nobody tells more while the engine sleeps
    if (options_.after_step) options_.after_step();
    const bool may_start = core_.requests_open() > 0 && core_.sequences_paused() == 0;
    if (moving) {
      wait_for_pages();
    } else if (!worked && (stood || !may_start)) {
      publish_curve();
      sleep();
    }
    // A sequence that waited for the last page may start now: one more round tells.
    stood = !worked && !moving;
  }
}

bool Engine::take_messages() {
  bool last = false;
  {
    const std::lock_guard lock(waker_->mutex);
    messages_.swap(inbox_);
    has_messages_ = false;
    idle_ = false;
    last = stopping_;  // read together with the swap: the inbox keeps no message
  }
  for (Message& message : messages_) handle(message);
  messages_.clear();
  return !last;
}

void Engine::handle(Message& message) {
  if (auto* const submission = std::get_if<Submission>(&message)) {
    if (submission->request.explain_only) return questions_.push_back(std::move(*submission));
    core_.submit(submission->id, std::move(submission->request), std::move(submission->sink));
  } else if (const auto* const cancelled = std::get_if<Cancellation>(&message)) {
    std::erase_if(questions_, [&](const Submission& one) { return one.id == cancelled->id; });
    core_.cancel(cancelled->id, cancelled->reason);
  } else if (const auto* const tenants = std::get_if<std::vector<NamedTenant>>(&message)) {
    take_tenants(*tenants);
  } else if (const auto* const order = std::get_if<Order>(&message)) {
    (*order)(core_);
  } else {
    cache_.advance_time(clock_.now_ns());
    std::get<std::function<void(kv::Cache&)>>(message)(cache_);
  }
}

void Engine::answer_questions() {
  for (std::size_t i = 0; i < kQuestionsARound && !questions_.empty(); ++i) {
    Submission& asked = questions_.front();
    core_.submit(asked.id, std::move(asked.request), std::move(asked.sink));
    questions_.pop_front();
  }
}

void Engine::take_tenants(const std::vector<NamedTenant>& tenants) {
  for (std::uint32_t i = 0; i < tenants.size(); ++i) {
    const TenantId id(i + 1);
    if (id.value() < tenants_.size()) {
      tenants_.change(id, tenants[i].limits);
    } else {
      tenants_.add(tenants[i].name, tenants[i].limits);
    }
  }
}

void Engine::publish() {
  Snapshot now = {core_.counters()};
  now.sequences_running = core_.scheduler().running().size();
  now.sequences_paused = core_.sequences_paused();
  now.requests_waiting = core_.scheduler().tasks_waiting();
  now.waiting_by_reason = core_.scheduler().waiting().by_reason();
  now.blocks_all = cache_.pool().blocks();
  now.blocks_free = cache_.pool().blocks_free();
  now.blocks_idle = cache_.pool().blocks_idle();
  now.blocks_retained = cache_.retention().blocks();
  now.sessions = cache_.sessions().sessions();
  const kv::CacheStats stats = cache_.stats();
  now.blocks_evicted = stats.blocks_evicted;
  now.blocks_evicted_by_cause = stats.blocks_evicted_by_cause;
  now.blocks_deduplicated = stats.blocks_deduplicated;
  now.pages_dropped = stats.pages_dropped;
  now.is_lost = core_.is_lost();
  now.bytes_exchanged = runner_.bytes_exchanged();
  now.prompt_tokens_per_second = core_.prompt_rate().units_per_second().value_or(0);
  now.output_tokens_per_second = core_.output_rate().units_per_second().value_or(0);
  if (core_.tiers() != nullptr) note_tiers(*core_.tiers(), now);
  snapshot_.write(now);
  if (cache_.retention().version() != retained_version_) publish_retained();
  if (cache_.clock().time_ns - curve_published_ns_ >= kCurvePeriodNs) publish_curve();
  const bool tenants_came = tenant_stats_.size() != tenants_.size();
  if (tenants_came || clock_.now_ns() - tenants_published_ns_ >= kTenantsEveryNs) {
    const std::unique_lock lock(tenants_mutex_, std::try_to_lock);
    if (lock.owns_lock()) publish_tenants();
  }
}

// Publishing takes some 100 us where something changed, and happens once in a while.
void Engine::publish_curve() {
  curve_published_ns_ = cache_.clock().time_ns;
  if (cache_.curve().blocks_asked() == curve_asked_) return;
  curve_asked_ = cache_.curve().blocks_asked();
  curve_.write(cache_.curve().stats());
}

void Engine::publish_tenants() {
  tenants_published_ns_ = clock_.now_ns();
  tenant_stats_.resize(tenants_.size());
  for (std::uint32_t i = 0; i < tenants_.size(); ++i) {
    const sched::Tenant& tenant = tenants_[TenantId(i)];
    TenantStats& stats = tenant_stats_[i];
    stats.name = tenant.name;
    stats.sequences_running = tenant.sequences_running;
    stats.requests_queued = tenant.sequences_waiting();
    stats.kv_tokens_held = tenant.kv_tokens_held;
    stats.blocks_cached = i == 0 ? cache_.salts().blocks_charged(kv::kPublicAccount)
                                 : cache_.salts().blocks_charged(kv::OwnerId(i));
    stats.tokens_computed = tenant.tokens_computed;
    stats.use = tenant.use;
  }
}

std::vector<TenantStats> Engine::tenants() const {
  const std::lock_guard lock(tenants_mutex_);
  return tenant_stats_;
}

void Engine::publish_retained() {
  retained_version_ = cache_.retention().version();
  std::vector<kv::GrantStats> retained = cache_.retention().grants();
  const std::lock_guard lock(retained_mutex_);
  retained_.swap(retained);
}

std::vector<kv::GrantStats> Engine::retained() const {
  const std::int64_t now_ns = clock_.now_ns();
  std::vector<kv::GrantStats> running;
  const std::lock_guard lock(retained_mutex_);
  // While the engine sleeps nobody releases grants that have ended.
  std::copy_if(retained_.begin(), retained_.end(), std::back_inserter(running),
               [&](const kv::GrantStats& grant) { return grant.until_ns > now_ns; });
  return running;
}

std::string Engine::tenant_name(TenantId id) const {
  const std::lock_guard lock(tenants_mutex_);
  return id.value() < tenant_stats_.size() ? tenant_stats_[id.value()].name : std::string();
}

// Pages are on their way, and nothing can be computed before they come or have taken too long.
// Stores notify when there is something to do.
void Engine::wait_for_pages() {
  constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(2);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(1);
  // While requests are open, deadlines pass and readers go on.
  const std::chrono::nanoseconds longest = core_.requests_open() > 0 ? kPausedLook : kLongest;
  const std::chrono::nanoseconds due(core_.next_look_ns() - clock_.now_ns());
  std::unique_lock lock(waker_->mutex);
  waker_->wake.wait_for(lock, std::clamp(due, kShortest, longest),
                        [this] { return has_messages_ || waker_->pages_came; });
  waker_->pages_came = false;
}

void Engine::find_loss() {
  if (!watches_device()) return;
  if (const std::optional<Error> error = runner_.find_loss()) core_.lose(*error);
}

void Engine::sleep() {
  {
    const std::lock_guard lock(tenants_mutex_);
    publish_tenants();
  }
  std::unique_lock lock(waker_->mutex);
  const auto woken = [this] { return !inbox_.empty() || stopping_; };
  // Nothing moves until a reader does, or a deadline passes.
  if (core_.requests_open() > 0) {
    waker_->wake.wait_for(lock, kPausedLook, woken);
    return;
  }
  idle_ = true;
  finished_.notify_all();
  // A session that nobody uses ends, and a device vanishes, though nobody asks for anything.
  const std::chrono::nanoseconds longest = watches_device() ? kDeviceLook : kLongSleep;
  if (const std::optional<std::int64_t> due_ns = core_.next_close_ns()) {
    const std::chrono::nanoseconds left(*due_ns - clock_.now_ns());
    waker_->wake.wait_for(lock, std::clamp<std::chrono::nanoseconds>(left, kPausedLook, longest),
                          woken);
  } else if (watches_device()) {
    waker_->wake.wait_for(lock, longest, woken);
  } else {
    waker_->wake.wait(lock, woken);
  }
}

}  // namespace pagoda::engine
