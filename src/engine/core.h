// Core is the engine's loop: it executes the scheduler's plan.
//
//   launch    take, plan, reserve, assemble, launch
//   collect   collect, seal, append, emit
//
// On a CPU the halves follow each other; a runner that allows it is one launch ahead. Core knows
// neither threads nor inboxes (engine.h has them): tests drive it step by step. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/distributions.h"
#include "engine/drafting.h"
#include "engine/engine_meters.h"
#include "engine/launch_assembler.h"
#include "engine/open_request.h"
#include "engine/prefetches.h"
#include "engine/reply.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/session_prompts.h"
#include "engine/snapshot.h"
#include "engine/tiers/tier_options.h"
#include "kv/cache.h"
#include "kv/tiers/page_lease.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

class Tiers;

struct CoreOptions {
  sched::SchedulerOptions scheduler;
  RequestLimits limits;
  std::string space;  // the cache's namespace: model, numerics, KV format
  std::uint32_t requests_queued_max = 10000;
  std::vector<TokenId> end_tokens;  // end tokens of the model
  TierOptions tiers;                // stores outside the pool
  speculate::SpeculationOptions speculation = {};
  speculate::Drafter* drafter = nullptr;  // for measurements and tests; must outlive the core
  DraftModel* draft_model = nullptr;      // must outlive the core; nullptr: there is none
};

class Core {
 public:
  // All arguments must outlive the core.
  Core(const CoreOptions& options, kv::Cache& cache, sched::TenantTable& tenants, Runner& runner,
       const Clock& clock);
  ~Core();

  // Takes a request that check_request() has passed. A limit that is reached for now is reported
  // through the sink, as kRefused.
  void submit(RequestId id, Request request, std::shared_ptr<ReplySink> sink);
  // Ends what is left of a request; unknown ids are ignored, since a request may have ended on its
  // own. kStop when the client has all it wanted, else kCancelled.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);

  // False when there is nothing to do, or nothing before pages have come from another tier.
  bool step();

  // Gives pages their address outside the pool; tiers are not used before. Until the address is
  // sure, pages are only read.
  void set_space(const kv::SpaceId& space, bool is_sure = true);
  // Says that the address is wrong or cannot be had: tiers are not used any more. Blocks that tiers
  // may have given leave the pool, and open requests end with kError.
  void drop_space(const std::string& why);
  // Moves pages between steps, as long as some are on their way; false when none is.
  bool move_pages();
  // nullptr: there are no tiers outside the pool.
  const Tiers* tiers() const { return tiers_.get(); }
  bool awaits_pages() const;
  // Returns when move_pages() is due though no store notifies; the end of time: never.
  std::int64_t next_look_ns() const;
  // Queues every block that is worth keeping for the tiers. Nothing runs any more.
  void offload_all();

  // Pins pages of the pool for another server, as far as the pool has them, and ends such pins.
  std::vector<kv::LeasedPage> lease_pages(std::span<const kv::PageKey> keys);
  void end_leases(std::span<const kv::BlockId> blocks);

  // Ends a client's session: the blocks that it alone has are copied to the tiers, a few at a step,
  // and evicted first. Returns how many they are; kNotFound where there is no such session.
  Result<std::uint64_t> close_session(const SessionName& name);
  // Returns when a session is closed because nobody uses it, at the earliest; nothing: never.
  std::optional<std::int64_t> next_close_ns() const { return cache_.sessions().next_due_ns(); }
  // The last prompts of sessions. These two may be called from any thread.
  const SessionPrompts& session_prompts() const { return session_prompts_; }
  void forget_session_prompts(std::optional<TenantId> tenant);
  // Evicts what is idle in a tenant's private regions, or everything, and forgets the sessions and
  // prompts there.
  void reset(std::optional<TenantId> tenant);

  // An owner's private pages are removed everywhere, in three acts. The first evicts the pool's
  // pages and stops writes of the owner's pages to tiers; returns how many pages left the pool.
  std::uint64_t begin_removal(kv::OwnerId owner);
  // False while a store copies one of the owner's pages. Once true, stores may remove the owner's
  // pages, on another thread.
  bool removal_may_go_on(kv::OwnerId owner) const;
  // Called once no store has a page of the owner: evicts pages that came into the pool meanwhile,
  // and allows the owner's writes again. Returns how many pages left the pool.
  std::uint64_t end_removal(kv::OwnerId owner);

  const Counters& counters() const { return meters_.counters(); }
  // Any thread may read the distributions.
  const Distributions& distributions() const { return meters_.distributions(); }
  const RateMeter& prompt_rate() const { return meters_.prompt_rate(); }
  const RateMeter& output_rate() const { return meters_.output_rate(); }
  const sched::Scheduler& scheduler() const { return scheduler_; }
  // Counts running sequences that get no tokens of a step because nobody reads their output.
  std::uint64_t sequences_paused() const { return sequences_paused_; }
  // True: nothing is computed any more, and every request ends with kLost.
  bool is_lost() const { return lost_.has_value(); }
  void lose(const Error& error);
  std::size_t requests_open() const;
  // Stops the program when an invariant does not hold. Linear.
  void check() const;

 private:
  Status admit(const Request& request);
  Status fits(const Request& request, std::uint64_t tokens_max);
  void refuse(const Request& request, ReplySink& sink, FinishReason reason,
              const std::string& message);
  kv::CacheScope scope_of(const Request& request);
  void explain(const Request& request, ReplySink& sink);
  bool offload_closed();
  void demote(const Request& request, ReplySink& sink);
  void tell_cached(const Request& request, ReplySink& sink, FinishReason reason,
                   const SequenceRecord& known = {});
  void end_prefetches();
  void end_overdue();
  void pause_unread();
  void remember_prompt(const OpenSequence& seq);
  bool launch();
  void collect();
  void collect_rows(const sched::ScheduledChunk& rows, std::span<Result<SampledToken>> samples,
                    bool finite);
  void collect_draft(const sched::ScheduledChunk& rows, std::span<Result<SampledToken>> samples,
                     std::uint8_t nonfinite_row);
  void retain(const OpenSequence& seq);
  void add_token(OpenSequence& seq, const SampledToken& choice);
  std::optional<FinishReason> end_of(const OpenSequence& seq, const SampledToken& choice) const;
  void end_all(OpenRequest& request, FinishReason reason, const std::string& message);
  void finish(OpenSequence& seq, FinishReason reason, const std::string& message = {});
  void forget_finished();

  CoreOptions options_;
  kv::Cache& cache_;
  sched::TenantTable& tenants_;
  Runner& runner_;
  const Clock& clock_;
  sched::Scheduler scheduler_;
  std::unique_ptr<Tiers> tiers_;  // nullptr: the pool is the only tier
  std::unordered_map<RequestId, std::unique_ptr<OpenRequest>> requests_;
  Prefetches prefetches_;
  SessionPrompts session_prompts_;
  std::vector<std::unique_ptr<OpenRequest>> finished_;  // launches may still use them
  std::uint64_t sequences_paused_ = 0;
  std::optional<Error> lost_;
  EngineMeters meters_;
  Drafting drafting_;
  LaunchAssembler assembler_;
  std::int64_t collected_before_ns_ = 0;  // when the previous launch was collected
  double plan_seconds_ = 0;               // that the last launch took to plan
};

}  // namespace pagoda::engine
