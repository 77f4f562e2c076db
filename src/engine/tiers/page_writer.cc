#include "engine/tiers/page_writer.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

// Chains whose last block may leave next, and blocks of each: a few steps of prompts evict as many.
constexpr std::size_t kChainsLookedAt = 8;
constexpr std::size_t kBlocksLookedAt = 64;
// The pool is crowded while less than this part of it is free, or somebody waits for room.
constexpr std::uint64_t kFreePart = 2;
// Of the pool so much may be pinned, by all stores together: pages that no answer holds, and all.
constexpr std::size_t kIdlePinsPart = 16;
constexpr std::size_t kPinsPart = 4;
// Of the backlog so many wait in the queue: what is sealed meanwhile is written soon.
constexpr std::size_t kBacklogQueued = 16;

}  // namespace

std::size_t PageWriter::NameHash::operator()(const kv::BlockName& name) const {
  std::size_t hash = 0;
  std::memcpy(&hash, name.digest.data(), sizeof(hash));
  return hash;
}

PageWriter::PageWriter(const TierOptions& options, kv::Cache& cache, kv::StoreTicket& tickets)
    : options_(options), cache_(cache), tickets_(tickets) {
  for (kv::PageStore* const store : options.stores) lanes_.push_back({.store = store});
}

// Pinned pages cannot be evicted, and stores share what may be. One at a time may always be.
bool PageWriter::may_pin(const Lane& lane) const {
  const std::size_t share = cache_.pool().blocks() / lanes_.size();
  return lane.pins < options_.writes_running_max && lane.pins <= share / kPinsPart &&
         lane.idle_pins <= share / kIdlePinsPart;
}

bool PageWriter::is_idle() const {
  return pins_.empty() && std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
           return lane.queue.empty() && lane.backlog_left == 0;
         });
}

void PageWriter::used(std::span<const kv::NodeId> nodes) {
  if (options_.write == WriteMode::kOff) return;
  for (const kv::NodeId node : nodes) want(node);
}

void PageWriter::sealed(std::span<const kv::NodeId> nodes) {
  const bool through = options_.write == WriteMode::kThrough;
  if (!through && (options_.write == WriteMode::kOff || !crowded_)) return;
  for (const kv::NodeId node : nodes) want(node);
}

void PageWriter::notice_crowd(bool someone_lacks_room) {
  const bool before = crowded_;
  const std::uint64_t free = cache_.pool().blocks_free();
  crowded_ = someone_lacks_room || free * kFreePart < cache_.pool().blocks();
  if (!crowded_ || before) return;
  backlog_ = cache_.whole_blocks();  // used longest ago last
  for (Lane& lane : lanes_) lane.backlog_left = backlog_.size();
}

void PageWriter::take_backlog(Lane& lane) {
  while (lane.backlog_left > 0 && lane.queue.size() < kBacklogQueued) {
    want(lane, backlog_[--lane.backlog_left]);
  }
}

bool PageWriter::want(kv::NodeId node) {
  bool is_new = false;
  // Every store is asked, so that the use counts in each.
  for (Lane& lane : lanes_) is_new = want(lane, node) || is_new;
  return is_new;
}

bool PageWriter::want(Lane& lane, kv::NodeId node) {
  const kv::PrefixTree& tree = cache_.tree();
  if (!space_ || !tree.is_live(node) || !tree.is_whole(node) || is_forbidden(node)) return false;
  const kv::BlockName& name = cache_.name(node);
  if (!lacks(lane, node) || !lane.store->takes_writes()) return false;
  if (const auto queued = lane.queued.find(name); queued != lane.queued.end()) {
    queued->second = node;
    return false;
  }
  if (is_being_written(lane, name)) return false;
  if (lane.queue.size() >= options_.writes_queued_max && !stopping_) {
    ++blocks_skipped_;
    return false;
  }
  lane.queue.push_back(name);
  lane.queued.emplace(name, node);
  return true;
}

// Is one of the block's pages not there?
bool PageWriter::lacks(const Lane& lane, kv::NodeId node) const {
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    if (!cache_.tree().page(node, slice)) continue;
    if (!lane.store->keeps({.space = *space_, .name = cache_.name(node), .slice = slice})) {
      return true;
    }
  }
  return false;
}

bool PageWriter::is_being_written(const Lane& lane, const kv::BlockName& name) const {
  return lane.pins > 0 && std::any_of(pins_.begin(), pins_.end(), [&](const auto& pin) {
           return pin.second.lane == index_of(lane) && pin.second.name == name;
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

void PageWriter::poll(bool someone_lacks_room, bool stands_still) {
  if (!space_ || options_.write == WriteMode::kOff) return;
  notice_crowd(someone_lacks_room);
  for (Lane& lane : lanes_) take_backlog(lane);
  if (is_short_of_room()) note_leaving();
  if (someone_lacks_room && stands_still) return;  // what is pinned may be all that is in its way
  for (Lane& lane : lanes_) {
    while (!lane.queue.empty() && may_pin(lane)) {
      const auto next = lane.queued.find(lane.queue.front());
      if (!write(lane, {next->second, next->first})) break;
      lane.queued.erase(next);
      lane.queue.pop_front();
    }
  }
}

// Has anything changed since the last look, and is little left?
bool PageWriter::is_short_of_room() {
  const std::uint64_t free = cache_.pool().blocks_free();
  const bool changed = free != free_seen_ || cache_.blocks_evicted() != evicted_seen_;
  free_seen_ = free;
  evicted_seen_ = cache_.blocks_evicted();
  return changed && free * kFreePart < cache_.pool().blocks();
}

// A chain leaves from its end: what stands before its last block follows soon.
void PageWriter::note_leaving() {
  const kv::PrefixTree& tree = cache_.tree();
  for (kv::NodeId node : cache_.leaving_next(kChainsLookedAt)) {
    for (std::size_t i = 0; i < kBlocksLookedAt && !tree.is_root(node) && want(node); ++i) {
      node = tree.parent(node);
    }
  }
}

// False when the store has too much to do: once more, later.
bool PageWriter::write(Lane& lane, const Wanted& wanted) {
  if (!lane.store->takes_writes()) return true;
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    const kv::PageKey key = {.space = *space_, .name = wanted.name, .slice = slice};
    if (lane.store->keeps(key)) continue;
    const std::uint32_t idle_before = cache_.pool().blocks_idle();
    const std::optional<kv::BlockId> block = cache_.pin_page(wanted.node, wanted.name, slice);
    if (!block) continue;  // it left meanwhile
    if (is_forbidden(wanted.node)) {
      cache_.unpin_page(*block);
      return true;
    }
    const bool was_idle = is_held_for_stores(*block, cache_.pool().blocks_idle() < idle_before);
    const kv::StoreTicket ticket = ++tickets_;
    if (!lane.store->write({ticket, label_of(wanted.node, slice), options_.page_at(*block)})) {
      cache_.unpin_page(*block);
      return false;
    }
    pins_[ticket] = {index_of(lane), *block, wanted.name, owner_of(wanted.node), was_idle};
    ++lane.pins;
    lane.idle_pins += was_idle ? 1 : 0;
  }
  return true;
}

// Is the page held for stores alone? It is no longer idle when one of them has it.
bool PageWriter::is_held_for_stores(kv::BlockId block, bool was_idle) const {
  return was_idle || std::any_of(pins_.begin(), pins_.end(), [&](const auto& pin) {
           return pin.second.block == block && pin.second.was_idle;
         });
}

kv::PageLabel PageWriter::label_of(kv::NodeId node, std::uint32_t slice) const {
  const kv::PrefixTree& tree = cache_.tree();
  const auto tokens = tree.tokens(node);
  const kv::SaltId region = tree.region(node);
  const bool is_public = region == kv::kPublic || !options_.owner_tag;
  return {.key = {.space = *space_, .name = cache_.name(node), .slice = slice},
          .owner = is_public ? kv::OwnerTag{} : options_.owner_tag(cache_.salts().owner(region)),
          .parent = cache_.name(tree.parent(node)),
          .tokens = {tokens.begin(), tokens.end()}};
}

bool PageWriter::take(const kv::StoreReport& report) {
  const auto pin = pins_.find(report.ticket);
  if (pin == pins_.end()) return false;
  cache_.unpin_page(pin->second.block);
  Lane& lane = lanes_[pin->second.lane];
  --lane.pins;
  lane.idle_pins -= pin->second.was_idle ? 1 : 0;
  pins_.erase(pin);
  return true;
}

void PageWriter::drop_queue() {
  for (Lane& lane : lanes_) {
    lane.queue.clear();
    lane.queued.clear();
    lane.backlog_left = 0;
  }
  backlog_.clear();
}

void PageWriter::drop_space() {
  drop_queue();
  space_.reset();
}

void PageWriter::keep_all() {
  stopping_ = true;
  if (options_.write == WriteMode::kOff) return;
  for (const kv::NodeId node : cache_.whole_blocks()) want(node);
}

}  // namespace pagoda::engine
