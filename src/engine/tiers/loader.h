// Loader brings pages that tiers have of waiting prompts into the pool, before their turn.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/rate_meter.h"
#include "engine/tiers/load.h"
#include "engine/tiers/page_reads.h"
#include "engine/tiers/tier_options.h"
#include "engine/turn_estimate.h"
#include "kv/cache.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

class Loader {
 public:
  // All arguments must outlive the loader. Tickets are drawn from a counter that others draw from,
  // too.
  Loader(const TierOptions& options, kv::Cache& cache, sched::Scheduler& scheduler,
         kv::StoreTicket& tickets, const RateMeter& model_rate);

  // Gives pages their address outside from now on.
  void set_space(const kv::SpaceId& space) { space_ = space; }
  // Pages have no address and will have none: nothing more is loaded.
  void drop_space();

  // The task waits in the queue: its pages are looked for.
  void consider(sched::SequenceTask& task, std::int64_t now_ns, std::uint32_t turns_lost = 0);
  // The task only fetches: its pages come, however long they take, and it never runs.
  void prefetch(sched::SequenceTask& task, std::int64_t now_ns);
  // The task runs: its load ends, or goes on from the back.
  void started(sched::SequenceTask& task, std::int64_t now_ns);
  // Has all come that comes for a prefetch, or is there no room for it?
  bool is_settled(const sched::SequenceTask& task, std::int64_t now_ns) const;
  // The task has ended: returns what was loaded for it.
  LoadRecord ended(const sched::SequenceTask& task);

  // False: the report is not of a read or a lookup of this loader.
  bool take(const kv::StoreReport& report, std::int64_t now_ns);
  // Starts loads that can start, and sets SequenceTask::awaits_load of each task.
  void poll(std::int64_t now_ns);

  // Returns how far, in whole blocks, a prompt is known to the stores that answer at once; the pool
  // has `tokens_matched` of it.
  TokensInTiers tokens_at_hand(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                               std::span<const kv::BlockHash> hashes, std::uint64_t tokens_matched);
  // True: the prompt's last whole block ends there, its last token left out.
  bool is_last_whole(std::span<const TokenId> findable, std::uint64_t tokens) const {
    return tokens % block_tokens() == 0 && tokens + block_tokens() > findable.size();
  }

  // Returns how many tokens stores gave to the task so far.
  std::uint64_t tokens_loaded(const sched::SequenceTask& task) const;

  std::optional<double> bytes_per_second(std::size_t store) const {
    return reads_.bytes_per_second(store);
  }

  std::size_t stores() const { return reads_.stores(); }
  double seconds_reading(std::size_t store) const { return reads_.seconds_reading(store); }

  // True: no page is on its way, nor about to be.
  bool is_idle() const;
  // Returns when poll() has something to decide though no store reports anything; the end of time:
  // never.
  std::int64_t next_look_ns(std::int64_t now_ns) const;

 private:
  // A load whose turn came so often and did not suffice is given up: its task computes.
  static constexpr std::uint32_t kTurnsMax = 4;

  // Finding (loader.cc)
  void begin(Load& load, std::int64_t now_ns);
  void hash_blocks(Load& load);
  void ask_on(Load& load, std::int64_t now_ns);
  PageSearchInputs inputs(std::span<const kv::memory::AttentionSpec> groups) const;
  void open(Load& load, std::int64_t now_ns);
  void search_again(Load& load, std::uint64_t end, std::int64_t now_ns);
  void rest(Load& load);
  bool loses_turn(Load& load);
  void refuse(Load& load);
  std::uint64_t blocks_spare(bool has_turn) const;
  const Load* bringing_the_same(const Load& load, std::int64_t now_ns) const;
  kv::PageKey key_of(const Load& load, std::uint64_t block, std::uint32_t group) const;
  kv::OwnerTag owner_of(const Load& load, std::uint64_t block) const;
  std::uint64_t block_tokens() const { return cache_.options().block_tokens; }
  kv::Match match_blocks(const Load& load) const {
    return cache_.match(*load.task->scope, load.task->tokens, kv::MatchEnd::kWholeBlock);
  }
  // How many pages it takes to load the blocks from load.first to `end`.
  std::uint64_t pages_to_load(const Load& load, std::uint64_t end) const {
    return kv::memory::pages_to_load(load.groups, cache_.options().block_tokens, load.first,
                                     end * block_tokens());
  }
  std::uint32_t groups() const { return cache_.tree().groups(); }

  // Reading (loader_reads.cc)
  void poll(Load& load, std::uint32_t& active, std::int64_t now_ns);
  void advance(Load& load, std::int64_t now_ns);
  bool may_read(const Load& load) const;
  void read_on(Load& load, std::int64_t now_ns);
  std::optional<std::uint64_t> next_block(Load& load) const;
  void read_block(Load& load, std::uint64_t block, std::int64_t now_ns);
  void settle_block(Load& load, std::uint64_t block);
  static void shrink(Load& load, std::uint64_t end);
  static bool has_windows(const Load& load);
  static std::size_t store_of(const PageSearch& search,
                              std::span<const kv::memory::AttentionSpec> groups,
                              std::uint64_t block);
  static std::size_t store_of(const Load& load, std::uint64_t block) {
    return store_of(*load.search, load.groups, block);
  }
  void publish(Load& load);
  void turn_back(Load& load);
  void decide(Load& load, std::int64_t now_ns);
  bool worth_waiting(const Load& load, std::int64_t now_ns) const;
  bool worth_a_turn(const Load& load, std::int64_t now_ns) const;
  bool ends_first(const Load& load, std::int64_t now_ns) const;
  LoadEstimate estimate(const Load& load, std::int64_t now_ns) const;
  void abandon(Load& load);
  bool make_way(std::int64_t now_ns);
  bool room_will_come() const;
  // True: the load neither holds nor asks for anything.
  static bool can_begin(const Load& load) {
    return load.stage == LoadStage::kNew || load.stage == LoadStage::kRested;
  }
  // Where tasks wait for room, only a load whose turn has come takes any.
  bool may_begin(const Load& load) const {
    if (load.task->load_has_room) return true;
    return load.stage == LoadStage::kNew && (!load.was_refused || !scheduler_.lacks_blocks());
  }
  static bool lacks_room(const sched::SequenceTask& task) {
    return task.state == sched::TaskState::kWaiting && task.waits_for == sched::WaitReason::kBlocks;
  }
  void forget_ended();

  const TierOptions& options_;
  kv::Cache& cache_;
  sched::Scheduler& scheduler_;
  kv::StoreTicket& tickets_;
  const RateMeter& model_rate_;  // tokens of prompts
  kv::BlockHasher hasher_;
  std::optional<kv::SpaceId> space_;
  bool has_changed_ = false;                  // set by the last poll(): tasks may go on
  bool expects_space_ = true;                 // false: the space's id was dropped, or cannot be had
  std::vector<std::unique_ptr<Load>> loads_;  // in order of arrival
  std::unordered_map<const sched::SequenceTask*, Load*> load_of_;
  std::unordered_map<const sched::SequenceTask*, LoadRecord> records_;  // of ended loads
  PageReads reads_;
  std::uint64_t pages_prefetched_ = 0;  // pages that are on their way for prefetches
  std::unordered_map<kv::StoreTicket, Load*> lookups_;  // nullptr: nobody waits for the result
};

}  // namespace pagoda::engine
