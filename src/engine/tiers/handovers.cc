#include "engine/tiers/handovers.h"

#include <algorithm>
#include <utility>

namespace pagoda::engine {

Handovers::Handovers(const TierOptions& options, kv::Cache& cache, PageWriter& writer,
                     PageLeases& leases, kv::StoreTicket& tickets)
    : options_(options), cache_(cache), writer_(writer), leases_(leases), tickets_(tickets) {
  for (kv::PageStore* const store : options.stores) {
    if (shared_ == nullptr && store->is_shared()) shared_ = store;
  }
}

void Handovers::begin(Handover handover, std::int64_t now_ns) {
  if (handover.nodes.empty()) return handover.done({.missing = "it fills no block"});
  if (shared_ == nullptr && !leases_.is_on()) {
    return handover.done({.missing = "no store is shared with others"});
  }
  auto open = std::make_unique<Open>();
  open->handover = std::move(handover);
  open->deadline_ns = now_ns + options_.handover_ns_max;
  open_.push_back(std::move(open));
}

void Handovers::poll(std::int64_t now_ns) {
  for (const auto& open : open_) {
    advance(*open);
    if (open->stage != Stage::kTold && now_ns >= open->deadline_ns) tell(*open, false);
  }
  std::erase_if(open_, [](const auto& open) { return open->stage == Stage::kTold; });
}

void Handovers::advance(Open& open) {
  if (has_dropped_space_) return tell(open, false);
  if (open.stage == Stage::kUnnamed && writer_.space()) {
    for (const kv::NodeId node : open.handover.nodes) writer_.hand_over(node);
    open.stage = Stage::kWriting;
    if (leases_.is_on()) begin_leases(open);
  }
  if (open.stage == Stage::kWriting && is_written(open)) begin_asking(open);
}

void Handovers::begin_leases(Open& open) {
  const Handover& handover = open.handover;
  open.blocks_leased = leases_.hand_over(handover.nodes, handover.hashes, handover.groups);
  if (shared_ == nullptr || open.blocks_leased == handover.hashes.size()) tell(open, true);
}

// Blocks are written in the order in which they were queued.
bool Handovers::is_written(Open& open) const {
  const std::vector<kv::BlockHash>& hashes = open.handover.hashes;
  while (open.settled < hashes.size() && !writer_.is_handing_over(hashes[open.settled])) {
    ++open.settled;
  }
  return open.settled == hashes.size();
}

PageSearch Handovers::search_of(const Open& open) const {
  return {{.space = *writer_.space(),
           .groups = open.handover.groups,
           .block_tokens = cache_.options().block_tokens,
           .stores = 1},
          open.handover.hashes,
          0};
}

void Handovers::begin_asking(Open& open) {
  if (!writer_.space()) return tell(open, false);
  open.stage = Stage::kAsking;
  open.search.emplace(search_of(open));
  ask_on(open);
}

void Handovers::ask_on(Open& open) {
  while (const std::optional<PageSearch::Lookup> lookup = open.search->next()) {
    const kv::StoreTicket ticket = ++tickets_;
    const std::optional<std::size_t> found = shared_->find(ticket, lookup->keys);
    if (!found) {
      open.lookup = ticket;
      lookups_[ticket] = &open;
      return;
    }
    open.search->record_found(*found);
  }
  tell(open, true);
}

bool Handovers::take(const kv::StoreReport& report) {
  const auto asked = lookups_.find(report.ticket);
  if (asked == lookups_.end()) return false;
  Open* const open = asked->second;
  lookups_.erase(asked);
  if (open == nullptr) return true;
  open->lookup = 0;
  open->search->record_found(report.fault == kv::StoreFault::kNone ? report.keys_found : 0);
  ask_on(*open);
  return true;
}

// Returns how many blocks the store has as far as is known without asking it.
std::uint64_t Handovers::blocks_known(const Open& open) const {
  if (!writer_.space() || shared_ == nullptr) return 0;
  PageSearch search = search_of(open);
  while (const std::optional<PageSearch::Lookup> lookup = search.next()) {
    const auto missing = std::find_if(lookup->keys.begin(), lookup->keys.end(),
                                      [&](const kv::PageKey& key) { return !shared_->keeps(key); });
    search.record_found(static_cast<std::size_t>(missing - lookup->keys.begin()));
  }
  return search.end();
}

void Handovers::tell(Open& open, bool in_time) {
  if (open.stage == Stage::kTold) return;
  open.stage = Stage::kTold;
  if (open.lookup != 0) lookups_[std::exchange(open.lookup, 0)] = nullptr;
  const std::uint64_t in_store = in_time && open.search ? open.search->end() : blocks_known(open);
  const std::uint64_t blocks = std::max(open.blocks_leased, in_store);
  HandoverOutcome outcome = {.tokens = blocks * cache_.options().block_tokens};
  if (blocks < open.handover.hashes.size()) {
    const bool is_off =
        shared_ != nullptr && (options_.write == WriteMode::kOff || !shared_->takes_writes());
    outcome.missing = has_dropped_space_ || !writer_.space() ? "its pages have no address yet"
                      : shared_ == nullptr ? "there is no room for more leases, or it left memory"
                      : is_off             ? "the shared store takes no pages"
                      : in_time ? "the shared store has no room for all of it, or it left memory"
                                : "the shared store was too slow";
  }
  open.handover.done(std::move(outcome));
}

void Handovers::end_all() {
  for (const auto& open : open_) tell(*open, false);
  open_.clear();
}

}  // namespace pagoda::engine
