// The loop: does what the scheduler decides.
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
#include "engine/open_request.h"
#include "engine/reply.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/snapshot.h"
#include "engine/tiers/tier_options.h"
#include "kv/cache.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

class Tiers;

struct CoreOptions {
  sched::SchedulerOptions scheduler;
  RequestLimits limits;
  std::string space;  // the namespace: model, numerics, KV format
  std::uint32_t requests_queued_max = 10000;
  std::vector<TokenId> end_tokens;  // of the model
  TierOptions tiers;                // outside the pool
};

class Core {
 public:
  // All must outlive the core.
  Core(const CoreOptions& options, kv::Cache& cache, sched::TenantTable& tenants, Runner& runner,
       const Clock& clock);
  ~Core();

  // A request that check_request() has passed. A limit that is reached for now is answered through
  // the sink, as kRefused.
  void submit(RequestId id, Request request, std::shared_ptr<ReplySink> sink);
  // Ends what is left of a request; unknown ids are ignored: it may have ended on its own. kStop
  // when the asker has all it wanted, else kCancelled.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);

  // False when there is nothing to do, or nothing before pages have come from another tier.
  bool step();

  // Pages have this address outside from now on; before, tiers are not used. Until it is sure they
  // are only read.
  void set_space(const kv::SpaceId& space, bool is_sure = true);
  // The address is wrong, or not to be had: tiers are not used any more. What they may have given
  // leaves memory, and requests that are open end with kError.
  void drop_space(const std::string& why);
  // Pages are moved between steps, too, as long as some are on their way; false when none is.
  bool move_pages();
  // nullptr: there are none outside the pool.
  const Tiers* tiers() const { return tiers_.get(); }
  bool awaits_pages() const;
  // When move_pages() is due though no store notifies; the end of time: never.
  std::int64_t next_look_ns() const;
  // Nothing runs any more: everything that is worth it is to be kept in tiers.
  void offload_all();

  // An owner's private pages are removed everywhere, in three acts. The pool's leave, and no more
  // of the owner is written to a tier; returns how many left.
  std::uint64_t begin_removal(kv::OwnerId owner);
  // Until then a store copies one of the owner's pages. From then on stores may remove them, on
  // another thread.
  bool removal_may_go_on(kv::OwnerId owner) const;
  // Stores have none of the owner's any more: what came into the pool meanwhile leaves it, and from
  // now on the owner is as one who never asked. Returns how many left.
  std::uint64_t end_removal(kv::OwnerId owner);

  const Counters& counters() const { return counters_; }
  // Any thread reads it.
  const Distributions& distributions() const { return distributions_; }
  const sched::Scheduler& scheduler() const { return scheduler_; }
  // Running sequences that get no rows because nobody takes what they have given.
  std::uint64_t sequences_paused() const { return sequences_paused_; }
  // Nothing is computed any more: every request ends with kLost.
  bool is_lost() const { return lost_.has_value(); }
  std::size_t requests_open() const { return requests_.size(); }
  // Stops the program when an invariant does not hold. Linear.
  void check() const;

 private:
  Status admit(const Request& request);
  Status fits(const Request& request, std::uint64_t tokens_max);
  void refuse(const Request& request, ReplySink& sink, FinishReason reason,
              const std::string& message);
  void lose(const Error& error);
  kv::CacheScope scope_of(const Request& request);
  void explain(const Request& request, ReplySink& sink);
  void end_overdue();
  void pause_unread();
  bool launch();
  void note_start(OpenSequence& seq, std::int64_t now_ns);
  void note_first_token(const OpenSequence& seq);
  void note_end(const OpenRequest& request);
  void assemble(const sched::Step& step);
  void assemble_rows(const sched::ScheduledChunk& rows);
  void collect();
  void collect_rows(const sched::ScheduledChunk& rows, std::span<Result<SampledToken>> samples,
                    std::span<const TokenScore>& scores, bool finite);
  void take_scores(OpenSequence& seq, const sched::ScheduledChunk& rows,
                   std::span<const TokenScore>& scores);
  void retain(const OpenSequence& seq);
  void add_token(OpenSequence& seq, const SampledToken& choice);
  std::optional<FinishReason> end_of(const OpenSequence& seq, TokenId token) const;
  void end_all(OpenRequest& request, FinishReason reason, const std::string& message);
  void finish(OpenSequence& seq, FinishReason reason, const std::string& message = {});
  void forget_finished();

  CoreOptions options_;
  kv::Cache& cache_;
  sched::TenantTable& tenants_;
  Runner& runner_;
  const Clock& clock_;
  sched::Scheduler scheduler_;
  std::unique_ptr<Tiers> tiers_;  // nullptr: the pool is all there is
  std::unordered_map<RequestId, std::unique_ptr<OpenRequest>> requests_;
  std::vector<std::unique_ptr<OpenRequest>> finished_;  // launches may still use them
  std::uint64_t sequences_paused_ = 0;
  std::optional<Error> lost_;
  Counters counters_;
  Distributions distributions_;

  // Of the launch that is assembled.
  std::vector<LaunchRows> rows_;
  std::vector<LaunchSample> samples_;
  std::vector<LaunchScore> scores_;
  std::vector<kv::memory::BlockTable> tables_;
  std::uint32_t row_count_ = 0;
  std::int64_t collected_before_ns_ = 0;  // when the launch before was
};

}  // namespace pagoda::engine
