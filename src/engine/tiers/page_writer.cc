#include "engine/tiers/page_writer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/assert.h"
#include "engine/tiers/page_label.h"
#include "kv/cache_snapshot.h"

namespace pagoda::engine {
namespace {

// Chains whose last block may leave next, and blocks of each: prompts evict as many in a few steps.
constexpr std::size_t kChainsLookedAt = 8;
constexpr std::size_t kBlocksLookedAt = 64;
// The pool is crowded while less than 1 / kFreePart of it is free, or a task waits for room.
constexpr std::uint64_t kFreePart = 2;
// All stores together may pin these parts of the pool: of pages that no sequence holds, and of all.
constexpr std::size_t kIdlePinsPart = 16;
constexpr std::size_t kPinsPart = 4;
// At most so many blocks of the backlog wait in the queue: blocks that are sealed meanwhile are
// written soon.
constexpr std::size_t kBacklogQueued = 16;

}  // namespace

std::size_t PageWriter::BlockHashHasher::operator()(const kv::BlockHash& block_hash) const {
  std::size_t hash = 0;
  std::memcpy(&hash, block_hash.digest.data(), sizeof(hash));
  return hash;
}

PageWriter::PageWriter(const TierOptions& options, kv::Cache& cache, kv::StoreTicket& tickets)
    : options_(options), cache_(cache), tickets_(tickets) {
  for (kv::PageStore* const store : options.stores) targets_.push_back({.store = store});
}

// Pinned pages cannot be evicted, and stores share the limit. One page at a time may always be
// pinned.
bool PageWriter::may_pin(const WriteTarget& target) const {
  const std::size_t share = cache_.pool().blocks() / targets_.size();
  return target.pins < options_.writes_running_max && target.pins <= share / kPinsPart &&
         target.idle_pins <= share / kIdlePinsPart;
}

bool PageWriter::is_idle() const {
  return pins_.empty() &&
         std::all_of(targets_.begin(), targets_.end(), [](const WriteTarget& target) {
           return target.queue.empty() && target.backlog_left == 0;
         });
}

std::size_t PageWriter::room() const {
  std::size_t room = SIZE_MAX;
  if (!space_ || options_.write == WriteMode::kOff) return room;
  for (const WriteTarget& target : targets_) {
    if (!target.store->takes_writes()) continue;
    const std::size_t queued = target.queue.size();
    room = std::min(room, options_.writes_queued_max -
                              std::min<std::size_t>(queued, options_.writes_queued_max));
  }
  return room;
}

void PageWriter::used(std::span<const kv::NodeId> nodes) {
  if (options_.write == WriteMode::kOff) return;
  for (const kv::NodeId node : nodes) want(node);
}

void PageWriter::hand_over(kv::NodeId node) {
  if (options_.write == WriteMode::kOff) return;
  for (WriteTarget& target : targets_) {
    if (target.store->is_shared()) want(target, node);
  }
}

bool PageWriter::is_handing_over(const kv::BlockHash& block_hash) const {
  return std::any_of(targets_.begin(), targets_.end(), [&](const WriteTarget& target) {
    return target.store->is_shared() &&
           (target.queued.contains(block_hash) || is_being_written(target, block_hash));
  });
}

void PageWriter::sealed(std::span<const kv::NodeId> nodes) {
  const bool through = options_.write == WriteMode::kThrough;
  if (!through && (options_.write == WriteMode::kOff || !under_pressure_)) return;
  for (const kv::NodeId node : nodes) want(node);
}

void PageWriter::note_pressure(bool lacks_blocks) {
  const bool before = under_pressure_;
  const std::uint64_t free = cache_.pool().blocks_free();
  under_pressure_ = lacks_blocks || free * kFreePart < cache_.pool().blocks();
  if (!under_pressure_ || before) return;
  backlog_ = kv::list_whole_blocks(cache_);  // the least recently used last
  for (WriteTarget& target : targets_) target.backlog_left = backlog_.size();
}

void PageWriter::take_backlog(WriteTarget& target) {
  while (target.backlog_left > 0 && target.queue.size() < kBacklogQueued) {
    want(target, backlog_[--target.backlog_left]);
  }
}

bool PageWriter::want(kv::NodeId node) {
  bool is_new = false;
  // Every store is asked, so that the use counts in each.
  for (WriteTarget& target : targets_) is_new = want(target, node) || is_new;
  return is_new;
}

bool PageWriter::want(WriteTarget& target, kv::NodeId node) {
  const kv::PrefixTree& tree = cache_.tree();
  if (!space_ || !tree.is_live(node) || !tree.is_whole(node) || is_forbidden(node)) return false;
  const kv::BlockHash& block_hash = cache_.hashes().of(node);
  if (!lacks(target, node) || !target.store->takes_writes()) return false;
  if (const auto queued = target.queued.find(block_hash); queued != target.queued.end()) {
    queued->second = node;
    return false;
  }
  if (is_being_written(target, block_hash)) return false;
  if (target.queue.size() >= options_.writes_queued_max && !stopping_) {
    ++blocks_skipped_;
    return false;
  }
  target.queue.push_back(block_hash);
  target.queued.emplace(block_hash, node);
  return true;
}

// True: one of the block's pages is missing.
bool PageWriter::lacks(const WriteTarget& target, kv::NodeId node) const {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (!cache_.tree().page(node, group)) continue;
    if (!target.store->keeps(
            {.space = *space_, .hash = cache_.hashes().of(node), .group = group})) {
      return true;
    }
  }
  return false;
}

bool PageWriter::is_being_written(const WriteTarget& target,
                                  const kv::BlockHash& block_hash) const {
  return target.pins > 0 && std::any_of(pins_.begin(), pins_.end(), [&](const auto& pin) {
           return pin.second.target == index_of(target) && pin.second.block_hash == block_hash;
         });
}

std::optional<kv::OwnerId> PageWriter::owner_of(kv::NodeId node) const {
  const kv::SaltId region = cache_.tree().region(node);
  if (region == kv::kPublic) return std::nullopt;
  return cache_.salts().owner(region);
}

bool PageWriter::is_forbidden(kv::NodeId node) const {
  if (cache_.salts().is_retired(cache_.tree().region(node))) return true;
  const std::optional<kv::OwnerId> owner = owner_of(node);
  return owner && std::find(forbidden_.begin(), forbidden_.end(), *owner) != forbidden_.end();
}

void PageWriter::allow(kv::OwnerId owner) {
  const auto one = std::find(forbidden_.begin(), forbidden_.end(), owner);
  ASSERT(one != forbidden_.end(), "what is allowed was forbidden");
  forbidden_.erase(one);
}

bool PageWriter::is_writing(kv::OwnerId owner) const {
  return std::any_of(pins_.begin(), pins_.end(),
                     [&](const auto& pin) { return pin.second.owner == owner; });
}

void PageWriter::poll(bool lacks_blocks, bool stands_still) {
  if (!space_ || options_.write == WriteMode::kOff) return;
  note_pressure(lacks_blocks);
  for (WriteTarget& target : targets_) take_backlog(target);
  if (is_short_of_room()) note_leaving();
  if (lacks_blocks && stands_still) return;  // pinned pages may be all that is in its way
  if (!may_write()) return;
  for (WriteTarget& target : targets_) {
    while (!target.queue.empty() && may_pin(target)) {
      const auto next = target.queued.find(target.queue.front());
      if (!write(target, {next->second, next->first})) break;
      target.queued.erase(next);
      target.queue.pop_front();
    }
  }
}

// Pages of a model that has changed are not written, now or later. Costs a few system calls, where
// anything is to be written.
bool PageWriter::may_write() {
  const bool has_work =
      std::any_of(targets_.begin(), targets_.end(),
                  [](const WriteTarget& target) { return !target.queue.empty(); });
  if (!has_work || !options_.is_model_unchanged || options_.is_model_unchanged()) return true;
  drop_space();
  return false;
}

// True: something has changed since the last look, and little room is left.
bool PageWriter::is_short_of_room() {
  const std::uint64_t free = cache_.pool().blocks_free();
  const std::uint64_t evicted = cache_.stats().blocks_evicted;
  const bool changed = free != free_seen_ || evicted != evicted_seen_;
  free_seen_ = free;
  evicted_seen_ = evicted;
  return changed && free * kFreePart < cache_.pool().blocks();
}

// A chain leaves from its end: the blocks before its last block follow soon.
void PageWriter::note_leaving() {
  const kv::PrefixTree& tree = cache_.tree();
  for (kv::NodeId node : cache_.eviction_candidates(kChainsLookedAt)) {
    for (std::size_t i = 0; i < kBlocksLookedAt && !tree.is_root(node) && want(node); ++i) {
      node = tree.parent(node);
    }
  }
}

// False when the store has too much to do: the write is tried again later.
bool PageWriter::write(WriteTarget& target, const Wanted& wanted) {
  if (!target.store->takes_writes()) return true;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const kv::PageKey key = {.space = *space_, .hash = wanted.block_hash, .group = group};
    if (target.store->keeps(key)) continue;
    const std::uint32_t idle_before = cache_.pool().blocks_idle();
    const std::optional<kv::BlockId> block = cache_.pin_page(wanted.node, wanted.block_hash, group);
    if (!block) continue;  // the block left meanwhile
    if (is_forbidden(wanted.node)) {
      cache_.unpin_page(*block);
      return true;
    }
    const bool was_idle = is_held_for_stores(*block, cache_.pool().blocks_idle() < idle_before);
    const kv::StoreTicket ticket = ++tickets_;
    if (!target.store->write({ticket, label_of(cache_, options_, *space_, wanted.node, group),
                              options_.page_at(*block)})) {
      cache_.unpin_page(*block);
      return false;
    }
    pins_[ticket] = {index_of(target), *block, wanted.block_hash, owner_of(wanted.node), was_idle};
    ++target.pins;
    target.idle_pins += was_idle ? 1 : 0;
  }
  return true;
}

// True: the page is held for stores alone. A page that another store has pinned is not idle any
// more, though no sequence holds it.
bool PageWriter::is_held_for_stores(kv::BlockId block, bool was_idle) const {
  return was_idle || std::any_of(pins_.begin(), pins_.end(), [&](const auto& pin) {
           return pin.second.block == block && pin.second.was_idle;
         });
}

bool PageWriter::take(const kv::StoreReport& report) {
  const auto pin = pins_.find(report.ticket);
  if (pin == pins_.end()) return false;
  cache_.unpin_page(pin->second.block);
  WriteTarget& target = targets_[pin->second.target];
  --target.pins;
  target.idle_pins -= pin->second.was_idle ? 1 : 0;
  pins_.erase(pin);
  return true;
}

void PageWriter::drop_queue() {
  for (WriteTarget& target : targets_) {
    target.queue.clear();
    target.queued.clear();
    target.backlog_left = 0;
  }
  backlog_.clear();
}

void PageWriter::drop_space() {
  drop_queue();
  space_.reset();
}

void PageWriter::offload_all() {
  stopping_ = true;
  if (options_.write == WriteMode::kOff) return;
  for (const kv::NodeId node : kv::list_whole_blocks(cache_)) want(node);
}

}  // namespace pagoda::engine
