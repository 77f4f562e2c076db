#include "engine/tiers/tiers.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

// Every whole block of the `findable` tokens is there. Tiers keep no part of a block, whatever else
// the cache knows of the rest.
void explain_whole_blocks(kv::Explanation& why, std::uint64_t findable) {
  if (why.reason == kv::MissReason::kInWork) return;  // another request computes the rest
  const bool is_all = why.stops_at() == findable;
  const bool is_observed = is_all && findable + 1 < why.prompt_tokens;
  why.reason = is_observed ? kv::MissReason::kObserved
               : is_all    ? kv::MissReason::kNone
                           : kv::MissReason::kWholeBlocks;
  why.tokens_reachable = findable;
  why.eviction.reset();
  why.stored.clear();
}

}  // namespace

Tiers::Tiers(const TierOptions& options, kv::Cache& cache, sched::Scheduler& scheduler,
             const RateMeter& model_rate)
    : options_(options),
      scheduler_(scheduler),
      loader_(options_, cache, scheduler, tickets_, model_rate),
      writer_(options_, cache, tickets_),
      leases_(options_, cache),
      handovers_(options_, cache, writer_, leases_, tickets_) {
  ASSERT(options.stores.size() <= kTiersMax, "records have room for every tier");
}

// Stores may still copy from and to pages: the destructor waits for reads and writes that have
// begun.
Tiers::~Tiers() {
  writer_.drop_queue();
  handovers_.end_all();
  for (;;) {
    take_reports(0);
    loader_.poll(0);
    if (is_idle()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Tiers::set_space(const kv::SpaceId& space, bool is_sure) {
  has_space_ = true;
  loader_.set_space(space);
  if (!is_sure) return;
  writer_.set_space(space);
  leases_.set_space(space);
}

bool Tiers::drop_space() {
  loader_.drop_space();
  writer_.drop_space();
  leases_.drop_space();
  handovers_.drop_space();
  return std::exchange(has_space_, false);
}

void Tiers::expect(sched::SequenceTask& task, const kv::PageOrigin& origin, std::int64_t now_ns) {
  std::int64_t worth_ns = 0;
  for (kv::PageStore* const store : options_.stores) {
    worth_ns = std::max(worth_ns, store->expect(task.block_hashes, origin));
  }
  if (worth_ns > 0) task.load_until_ns = now_ns + worth_ns;
}

void Tiers::start(sched::SequenceTask& task, std::int64_t now_ns) {
  writer_.used(task.sequence->nodes());
  loader_.started(task, now_ns);
}

TokensInTiers Tiers::explain(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                             std::span<const kv::BlockHash> hashes, kv::Explanation& why) {
  if (prompt.empty()) return {};
  TokensInTiers known = loader_.tokens_at_hand(scope, prompt, hashes, why.tokens_matched);
  const std::uint64_t end = known.end;
  if (end <= why.tokens_matched) return known;
  why.tokens_in_tier = end - why.tokens_matched;
  why.tokens_reachable = std::max(why.tokens_reachable, end);
  why.stored.clear();
  const std::span<const TokenId> findable = scope.lookup().findable(prompt);
  if (loader_.is_last_whole(findable, end)) {
    explain_whole_blocks(why, findable.size());
  } else if (why.reason == kv::MissReason::kDiffers) {
    // The pool goes on with other tokens, but a tier has those of the prompt.
    why.reason = kv::MissReason::kNeverSeen;
  }
  return known;
}

void Tiers::explain_start(sched::SequenceTask& task) const {
  kv::Explanation& why = task.explanation;
  const std::span<const TokenId> findable = task.scope->lookup().findable(task.tokens);
  const bool is_missing_part = why.stops_at() < findable.size();
  if (!is_missing_part || loader_.tokens_loaded(task) == 0) return;
  if (loader_.is_last_whole(findable, why.stops_at())) explain_whole_blocks(why, findable.size());
}

void Tiers::poll(std::int64_t now_ns) {
  const bool had_reports = take_reports(now_ns);
  loader_.poll(now_ns);
  writer_.poll(scheduler_.lacks_blocks(), scheduler_.stands_still());
  leases_.poll(scheduler_.lacks_blocks() && scheduler_.stands_still());
  handovers_.poll(now_ns);
  // A report that came within the call that asked notifies nobody.
  took_reports_ = take_reports(now_ns) || had_reports;
}

std::int64_t Tiers::next_look_ns(std::int64_t now_ns) const {
  return took_reports_ ? now_ns : loader_.next_look_ns(now_ns);
}

bool Tiers::take_reports(std::int64_t now_ns) {
  reports_.clear();
  for (kv::PageStore* const store : options_.stores) store->poll(reports_);
  for (const kv::StoreReport& report : reports_) {
    const bool known =
        loader_.take(report, now_ns) || writer_.take(report) || handovers_.take(report);
    ASSERT(known, "a store reports what it was given, once");
  }
  return !reports_.empty();
}

}  // namespace pagoda::engine
