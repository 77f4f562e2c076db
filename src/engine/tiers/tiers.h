// Tiers are the stores outside the pool, as the engine's loop sees them: pages come in before a
// request's turn and go out when they have proved useful. Nothing here waits: poll() looks at what
// has ended and starts what can start, between two steps.
//
// Thread rule: the engine's thread, but for the constructor.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/tiers/handovers.h"
#include "engine/tiers/loader.h"
#include "engine/tiers/page_leases.h"
#include "engine/tiers/page_writer.h"
#include "engine/tiers/tier_options.h"
#include "kv/cache.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

class Tiers {
 public:
  // All arguments must outlive the tiers; the cache hashes its blocks.
  Tiers(const TierOptions& options, kv::Cache& cache, sched::Scheduler& scheduler,
        const RateMeter& model_rate);
  ~Tiers();

  // Gives pages their address, once the model's fingerprint is known. Pages are written once the
  // address is sure, so that none is kept under a wrong one.
  void set_space(const kv::SpaceId& space, bool is_sure);
  // The address is wrong or cannot be had: tiers are not used any more. True: pages may have been
  // read.
  bool drop_space();

  // A request says where pages of the task's prompt are. Call before wait().
  void expect(sched::SequenceTask& task, const kv::PageOrigin& origin, std::int64_t now_ns);
  // A task waits, runs, computes more, and ends.
  void wait(sched::SequenceTask& task, std::int64_t now_ns) { loader_.consider(task, now_ns); }
  // ... or it only fetches (Loader::prefetch).
  void prefetch(sched::SequenceTask& task, std::int64_t now_ns) { loader_.prefetch(task, now_ns); }
  void start(sched::SequenceTask& task, std::int64_t now_ns);
  void note_sealed(std::span<const kv::NodeId> nodes) { writer_.sealed(nodes); }
  // Brings blocks to where other servers find them, and says then how far they are there.
  void hand_over(Handover handover, std::int64_t now_ns) {
    handovers_.begin(std::move(handover), now_ns);
  }
  // Has all come that comes for a prefetch, or is there no room for it?
  bool is_settled(const sched::SequenceTask& task, std::int64_t now_ns) const {
    return loader_.is_settled(task, now_ns);
  }
  LoadRecord end(const sched::SequenceTask& task) { return loader_.ended(task); }

  // Blocks of a prompt that the tiers which answer at once have are not missing; returns them.
  // `hashes` are those of its whole blocks.
  TokensInTiers explain(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                        std::span<const kv::BlockHash> hashes, kv::Explanation& why);
  // The task starts for the first time: where stores gave it every whole block, that explains why
  // its match ended there.
  void explain_start(sched::SequenceTask& task) const;

  void poll(std::int64_t now_ns);

  // Returns when poll() is due though no store notifies; the end of time: never.
  std::int64_t next_look_ns(std::int64_t now_ns) const;
  // True: no page is on its way, in or out.
  bool is_idle() const { return loader_.is_idle() && writer_.is_idle() && handovers_.is_idle(); }

  const Loader& loader() const { return loader_; }
  const Handovers& handovers() const { return handovers_; }
  const PageLeases& leases() const { return leases_; }
  PageLeases& leases() { return leases_; }
  const PageWriter& writer() const { return writer_; }
  PageWriter& writer() { return writer_; }

  // A clean stop: keeps blocks that are worth it until the time is up. Nothing runs any more.
  void offload_all() { writer_.offload_all(); }

 private:
  // True: there were reports.
  bool take_reports(std::int64_t now_ns);

  TierOptions options_;
  sched::Scheduler& scheduler_;
  kv::StoreTicket tickets_ = 0;
  bool has_space_ = false;
  bool took_reports_ = false;  // in the last poll()
  Loader loader_;
  PageWriter writer_;
  PageLeases leases_;
  Handovers handovers_;
  std::vector<kv::StoreReport> reports_;
};

}  // namespace pagoda::engine
