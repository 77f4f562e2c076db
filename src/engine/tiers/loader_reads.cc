// Reading: follows pages on their way, and decides whether waiting for them is worth it.
#include <algorithm>
#include <limits>
#include <tuple>

#include "base/assert.h"
#include "base/clock.h"
#include "engine/tiers/loader.h"

namespace pagoda::engine {

// Prefetches come last: they have the places that requests leave.
void Loader::poll(std::int64_t now_ns) {
  has_changed_ = make_way(now_ns);
  std::uint32_t active = 0;
  for (const bool is_prefetch : {false, true}) {
    for (const auto& load : loads_) {
      if (load->task != nullptr && load->is_prefetch == is_prefetch) poll(*load, active, now_ns);
    }
  }
  forget_ended();
}

void Loader::poll(Load& load, std::uint32_t& active, std::int64_t now_ns) {
  const sched::SequenceTask& task = *load.task;
  const auto state = [&] {
    return std::tuple(load.task, load.stage, task.awaits_load, task.load_wants_room);
  };
  const auto before = state();
  const bool has_place = active < options_.loads_max || load.task->load_has_room;
  if (!can_begin(load) || (has_place && may_begin(load))) {
    // Who waits for what another server still computes takes no place of those who load.
    active += load.is_expecting(now_ns) ? 0 : 1;
    advance(load, now_ns);
  }
  if (load.task != nullptr) decide(load, now_ns);
  has_changed_ = has_changed_ || state() != before;
}

void Loader::advance(Load& load, std::int64_t now_ns) {
  if (can_begin(load)) begin(load, now_ns);
  if (load.stage == LoadStage::kReading) publish(load);
  if (load.stage == LoadStage::kReading && load.task != nullptr) read_on(load, now_ns);
}

void Loader::read_on(Load& load, std::int64_t now_ns) {
  while (may_read(load)) {
    const std::optional<std::uint64_t> block = next_block(load);
    if (!block) break;
    read_block(load, *block, now_ns);
  }
}

// Prefetches leave half of the reads to requests.
bool Loader::may_read(const Load& load) const {
  if (reads_.is_full()) return false;
  return !load.is_prefetch || 2 * pages_prefetched_ < options_.reads_running_max;
}

// Blocks come from the front in order, or from the back down to where the task computes.
std::optional<std::uint64_t> Loader::next_block(Load& load) const {
  if (load.from_back) {
    const std::uint64_t computing = load.task->tokens_launched / block_tokens() + 1;
    while (load.next > std::max(load.committed, computing)) {
      --load.next;
      if (load.at(load.next).stage == BlockStage::kWanted) return load.next;
    }
    return std::nullopt;
  }
  if (load.next >= load.end) return std::nullopt;
  return load.next++;
}

void Loader::read_block(Load& load, std::uint64_t block, std::int64_t now_ns) {
  LoadBlock& state = load.at(block);
  state = {.stage = BlockStage::kReading};
  const auto tokens = std::span(load.task->tokens).subspan(block * block_tokens(), block_tokens());
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (!load.sequence->holds(group, block)) continue;
    ++state.pages_running;
    ++load.pages_running;
    pages_prefetched_ += load.is_prefetch ? 1 : 0;
    reads_.begin({&load, block, load.search->store_of(block, group)},
                 {.key = key_of(load, block, group),
                  .owner = owner_of(load, block),
                  .parent = block > 0 ? load.hashes[block - 1] : kv::root_hash(),
                  .tokens = {tokens.begin(), tokens.end()}},
                 options_.page_at(load.sequence->table(group)[block]), now_ns);
  }
  if (state.pages_running == 0) settle_block(load, block);  // no group sees the block
}

bool Loader::take(const kv::StoreReport& report, std::int64_t now_ns) {
  if (const auto asked = lookups_.find(report.ticket); asked != lookups_.end()) {
    Load* const waiting = asked->second;
    lookups_.erase(asked);
    if (waiting == nullptr) return true;
    Load& load = *waiting;
    load.lookup = 0;
    if (load.task == nullptr) return true;
    const bool fine = report.fault == kv::StoreFault::kNone;
    load.search->record_found(fine ? report.keys_found : 0);
    ask_on(load, now_ns);
    return true;
  }
  const std::optional<PageReads::Pending> read = reads_.end(report, now_ns);
  if (!read) return false;
  Load& load = *read->load;
  LoadBlock& block = load.at(read->block);
  const bool came = report.fault == kv::StoreFault::kNone;
  --load.pages_running;
  pages_prefetched_ -= load.is_prefetch ? 1 : 0;
  --block.pages_running;
  block.failed = block.failed || !came;
  block.cancelled = block.cancelled || report.fault == kv::StoreFault::kCancelled;
  if (came) load.last_page_ns = now_ns;
  if (block.pages_running == 0) settle_block(load, read->block);
  return true;
}

// Returns the store of the block's pages; where only windows see it, that of its last pages.
std::size_t Loader::store_of(const PageSearch& search,
                             std::span<const kv::memory::AttentionSpec> groups,
                             std::uint64_t block) {
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    if (groups[group].window == 0) return search.store_of(block, group);
  }
  return search.store_of(search.end() - 1, 0);
}

void Loader::settle_block(Load& load, std::uint64_t block) {
  LoadBlock& state = load.at(block);
  if (!state.failed) {
    state.stage = BlockStage::kHere;
    load.blocks_here += block < load.end ? 1 : 0;
  } else if (state.cancelled) {
    state.stage = BlockStage::kWanted;
  } else {
    state.stage = BlockStage::kFailed;
    // From the back, the task computes the block and goes on with those behind it. From the front
    // the load ends there; the pages that windows see before the new end were not asked for, so
    // that with windows nothing is left.
    if (!load.from_back && block < load.end)
      shrink(load, has_windows(load) ? load.committed : block);
  }
}

bool Loader::has_windows(const Load& load) {
  return std::any_of(load.groups.begin(), load.groups.end(),
                     [](const kv::memory::AttentionSpec& spec) { return spec.window != 0; });
}

// Pages behind the new end are of no use.
void Loader::shrink(Load& load, std::uint64_t end) {
  while (load.end > end) {
    --load.end;
    load.blocks_here -= load.at(load.end).stage == BlockStage::kHere ? 1 : 0;
  }
}

// Publishes the blocks that have come, in order. Blocks that were computed meanwhile, by the task
// itself or by others, are deduplicated where they stand below this load's: the task may have found
// the same tokens elsewhere, in the public region or under its salt.
void Loader::publish(Load& load) {
  const std::uint64_t before = load.committed;
  const bool runs = load.task->state == sched::TaskState::kRunning;
  while (load.committed < load.end) {
    const LoadBlock& block = load.at(load.committed);
    if (block.pages_running > 0) break;
    const auto tokens = std::span<const TokenId>(load.task->tokens)
                            .subspan(load.committed * block_tokens(), block_tokens());
    if (block.stage == BlockStage::kHere) {
      const std::uint64_t first = load.committed * block_tokens();
      load.record.add({.first = first,
                       .end = first + block_tokens(),
                       .store = store_of(load, load.committed),
                       .after_start = runs});
      cache_.commit(*load.sequence, tokens);
    } else if (!load.from_back || !cache_.commit_existing(*load.sequence, tokens)) {
      break;
    }
    ++load.committed;
  }
  sched::SequenceTask& task = *load.task;
  if (runs && load.committed > before) scheduler_.skip_ahead(task);
  if (load.committed < load.end) {
    // Once the task has computed up to the load's end, nothing that comes is of use.
    if (!runs || task.tokens_launched < load.end * block_tokens()) return;
  }
  if (runs) return abandon(load);
  load.stage = LoadStage::kHeld;
}

LoadEstimate Loader::estimate(const Load& load, std::int64_t now_ns) const {
  const std::uint64_t page_bytes = options_.page_at(kv::BlockId(0)).size();
  const bool asking = load.stage == LoadStage::kLookup;
  const bool is_new = load.stage == LoadStage::kNew;
  const std::uint64_t blocks_left =
      asking ? load.hashes.size() - load.first : load.end - load.first - load.blocks_here;
  const std::uint64_t blocks = (asking ? load.hashes.size() : load.end) - load.first;
  const std::uint64_t pages = pages_to_load(load, load.first + blocks);
  LoadEstimate estimate = {
      .tokens_left = blocks_left * block_tokens(),
      .bytes_left = blocks == 0 ? 0 : pages * page_bytes * blocks_left / blocks,
      .bytes_running = load.pages_running * page_bytes,
      .silent_s = is_new ? 0 : seconds_between(load.last_page_ns, now_ns),
      .tokens_per_second = model_rate_.units_per_second()};
  if (!asking) {
    const std::uint64_t next = std::min(load.committed, load.end - 1);
    estimate.bytes_per_second = reads_.bytes_per_second(store_of(load, next));
  }
  return estimate;
}

bool Loader::ends_first(const Load& load, std::int64_t now_ns) const {
  return load_or_recompute(options_.load, estimate(load, now_ns)).choice == LoadChoice::kWait;
}

bool Loader::worth_waiting(const Load& load, std::int64_t now_ns) const {
  if (load.was_refused) return false;
  if (load.is_prefetch) return true;  // nobody computes instead
  const bool is_coming = load.stage == LoadStage::kLookup || load.stage == LoadStage::kReading;
  if (is_coming && !load.from_back && now_ns < load.task->load_until_ns) return true;
  switch (load.stage) {
    case LoadStage::kNew: {
      if (!space_) return now_ns - load.arrived_ns < options_.space_wait_ns;
      const Load* const other = load.hashes.empty() ? nullptr : bringing_the_same(load, now_ns);
      if (other == nullptr) return false;
      return other->is_prefetch ? ends_first(*other, now_ns) : other->task->awaits_load;
    }
    case LoadStage::kLookup:
    case LoadStage::kReading:
      return !load.from_back && ends_first(load, now_ns);
    case LoadStage::kHeld:
    case LoadStage::kRested:
      return false;
  }
  return false;
}

// Stores have more than there was room for: decides whether the task leaves the load its own room.
bool Loader::worth_a_turn(const Load& load, std::int64_t now_ns) const {
  return load.stage == LoadStage::kNew && load.was_refused && load.end > load.first &&
         !load.is_prefetch && ends_first(load, now_ns);
}

void Loader::decide(Load& load, std::int64_t now_ns) {
  sched::SequenceTask& task = *load.task;
  const bool waits = task.state == sched::TaskState::kWaiting;
  task.awaits_load = waits && worth_waiting(load, now_ns);
  task.load_wants_room = waits && worth_a_turn(load, now_ns);
  task.tokens_seen_in_pool = waits && can_begin(load) ? load.first * block_tokens() : 0;
  if (task.awaits_load) {
    const bool could_run = task.waits_for == sched::WaitReason::kLoad;
    if (could_run && load.waits_since_ns == 0) load.waits_since_ns = now_ns;
  } else if (load.stage == LoadStage::kReading && !load.from_back) {
    turn_back(load);
  }
}

// The task computes from the front as soon as it can.
void Loader::turn_back(Load& load) {
  load.from_back = true;
  load.next = load.end;
  reads_.cancel(load);
}

void Loader::started(sched::SequenceTask& task, std::int64_t now_ns) {
  task.awaits_load = false;
  const auto found = load_of_.find(&task);
  if (found == load_of_.end()) return;
  Load& load = *found->second;
  if (load.waits_since_ns != 0) {
    load.record.waited_s += seconds_between(load.waits_since_ns, now_ns);
  }
  if (load.stage == LoadStage::kReading) {
    if (!load.from_back) turn_back(load);
  } else if (load.stage != LoadStage::kLookup) {
    abandon(load);
  }
}

std::uint64_t Loader::tokens_loaded(const sched::SequenceTask& task) const {
  std::uint64_t tokens = 0;
  if (const auto load = load_of_.find(&task); load != load_of_.end()) {
    tokens += load->second->record.tokens_loaded();
  }
  if (const auto record = records_.find(&task); record != records_.end()) {
    tokens += record->second.tokens_loaded();
  }
  return tokens;
}

LoadRecord Loader::ended(const sched::SequenceTask& task) {
  if (const auto found = load_of_.find(&task); found != load_of_.end()) abandon(*found->second);
  const auto record = records_.find(&task);
  if (record == records_.end()) return {};
  LoadRecord ended = record->second;
  records_.erase(record);
  if (const auto rate = model_rate_.units_per_second()) {
    const double computing_s = static_cast<double>(ended.tokens_loaded()) / *rate;
    ended.saved_s = std::max(0.0, computing_s - ended.waited_s);
  }
  return ended;
}

bool Loader::is_settled(const sched::SequenceTask& task, std::int64_t now_ns) const {
  const auto found = load_of_.find(&task);
  if (found == load_of_.end()) return true;
  const Load& load = *found->second;
  if (!space_) return now_ns - load.arrived_ns >= options_.space_wait_ns;
  return load.stage == LoadStage::kHeld || load.stage == LoadStage::kRested || load.was_refused;
}

// The load's pages stay until no store writes to them.
void Loader::abandon(Load& load) {
  sched::SequenceTask& task = *load.task;
  task.awaits_load = task.load_wants_room = task.load_has_room = false;
  task.tokens_seen_in_pool = 0;
  LoadRecord& record = records_[&task];
  for (const LoadedRange& range : load.record.ranges) record.add(range);
  record.tokens_offered += load.record.tokens_offered;
  record.waited_s += load.record.waited_s;
  load_of_.erase(&task);
  load.task = nullptr;
  reads_.cancel(load);
  if (load.lookup == 0) return;
  for (kv::PageStore* const store : options_.stores) store->cancel(std::span(&load.lookup, 1));
}

// Running tasks, and those that wait for room, come first: while they are short of room the
// youngest load gives its blocks back, prefetches before others. True: one did.
bool Loader::make_way(std::int64_t now_ns) {
  const std::uint64_t wanted = scheduler_.running().size() * groups();
  const bool runs_short = cache_.blocks_available() < wanted;
  if (!runs_short && !scheduler_.lacks_blocks()) return false;
  const bool patient = room_will_come();
  const auto gives_room = [&](const Load& load) {
    if (load.task == nullptr || !load.sequence) return false;
    // A task that waits for room keeps its load, and no waiting task goes before one whose turn it
    // is.
    const bool keeps = lacks_room(*load.task) || (load.has_turn && !runs_short);
    return !patient || !keeps;
  };
  Load* chosen = nullptr;
  for (auto each = loads_.rbegin(); each != loads_.rend(); ++each) {
    if (!gives_room(**each) || (chosen != nullptr && !(*each)->is_prefetch)) continue;
    chosen = each->get();
    if (chosen->is_prefetch) break;
  }
  if (chosen == nullptr) return false;
  // The load starts over when its turn comes; not for ever, if others stand still for it.
  sched::SequenceTask& task = *chosen->task;
  const std::uint32_t turns_lost = chosen->turns_lost + (chosen->has_turn || !patient ? 1 : 0);
  const bool starts_over = turns_lost < kTurnsMax && !chosen->is_prefetch;
  abandon(*chosen);
  if (starts_over) consider(task, now_ns, turns_lost);
  return true;
}

// True: a task runs, or is about to, so that room will come.
bool Loader::room_will_come() const {
  if (!scheduler_.stands_still()) return true;
  return std::any_of(loads_.begin(), loads_.end(), [](const std::unique_ptr<Load>& load) {
    const bool comes = load->stage == LoadStage::kLookup || load->stage == LoadStage::kReading;
    return load->task != nullptr && load->has_turn && comes && !load->from_back;
  });
}

bool Loader::is_idle() const {
  return std::all_of(loads_.begin(), loads_.end(), [](const std::unique_ptr<Load>& load) {
    return load->task != nullptr && load->stage == LoadStage::kRested;
  });
}

std::int64_t Loader::next_look_ns(std::int64_t now_ns) const {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  if (has_changed_) return now_ns;
  std::int64_t next_ns = kNever;
  for (const auto& load : loads_) {
    if (load->task == nullptr || !load->task->awaits_load) continue;
    if (!space_) {
      next_ns = std::min(next_ns, load->arrived_ns + options_.space_wait_ns);
    } else if (!can_begin(*load) && !load->is_prefetch && now_ns < load->task->load_until_ns) {
      next_ns = std::min(next_ns, load->task->load_until_ns);
    } else if (!can_begin(*load) && !load->is_prefetch) {
      constexpr double kLongest_s = 1e6;
      const double holds_s = load_or_recompute(options_.load, estimate(*load, now_ns)).holds_s;
      if (holds_s >= kLongest_s) continue;
      next_ns = std::min(next_ns, now_ns + static_cast<std::int64_t>(holds_s * 1e9) + 1);
    }
  }
  return next_ns;
}

void Loader::forget_ended() {
  std::erase_if(loads_, [](const std::unique_ptr<Load>& load) {
    return load->task == nullptr && load->pages_running == 0 && load->lookup == 0;
  });
}

}  // namespace pagoda::engine
