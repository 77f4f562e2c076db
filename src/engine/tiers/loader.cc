// Finding: decides which pages of a prompt come from which store.
#include "engine/tiers/loader.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/tiers/tier_seconds.h"

namespace pagoda::engine {

Loader::Loader(const TierOptions& options, kv::Cache& cache, sched::Scheduler& scheduler,
               kv::StoreTicket& tickets, const RateMeter& model_rate)
    : options_(options),
      cache_(cache),
      scheduler_(scheduler),
      tickets_(tickets),
      model_rate_(model_rate),
      reads_(options, tickets) {}

void Loader::consider(sched::SequenceTask& task, std::int64_t now_ns, std::uint32_t turns_lost) {
  if (!expects_space_ || task.compute_whole_prompt || task.tokens.size() <= block_tokens()) return;
  if (const auto before = load_of_.find(&task); before != load_of_.end()) abandon(*before->second);
  auto load = std::make_unique<Load>();
  load->task = &task;
  load->groups.assign(task.scope->groups().begin(), task.scope->groups().end());
  load->turns_lost = turns_lost;
  load->arrived_ns = load->last_page_ns = now_ns;
  load_of_[&task] = load.get();
  loads_.push_back(std::move(load));
}

void Loader::prefetch(sched::SequenceTask& task, std::int64_t now_ns) {
  consider(task, now_ns);
  if (const auto load = load_of_.find(&task); load != load_of_.end()) {
    load->second->is_prefetch = true;
  }
}

void Loader::drop_space() {
  space_.reset();
  expects_space_ = false;
  for (const auto& load : loads_) {
    if (load->task != nullptr) abandon(*load);
  }
}

void Loader::begin(Load& load, std::int64_t now_ns) {
  if (!space_) return;
  if (std::exchange(load.task->load_has_room, false)) load.has_turn = true;
  load.was_refused = load.was_refused && !load.has_turn;
  hash_blocks(load);
  load.first = match_blocks(load).nodes.size();
  load.committed = load.end = load.first;
  load.stage = LoadStage::kNew;
  if (load.first == load.hashes.size()) return rest(load);  // the pool has every block
  if (bringing_the_same(load, now_ns) != nullptr) return;
  load.stage = LoadStage::kLookup;
  load.last_page_ns = now_ns;
  load.blocks.clear();
  load.was_cut = false;
  load.search.emplace(inputs(load.groups), load.hashes, load.first);
  ask_on(load, now_ns);
}

// Prompts are hashed by the thread that submits them; output tokens of a preempted task, here.
void Loader::hash_blocks(Load& load) {
  const sched::SequenceTask& task = *load.task;
  const std::uint64_t blocks = task.scope->lookup().findable(task.tokens).size() / block_tokens();
  if (load.hashes.size() == blocks) return;
  if (task.block_hashes.size() >= blocks) {
    load.hashes.assign(task.block_hashes.begin(),
                       task.block_hashes.begin() + static_cast<std::ptrdiff_t>(blocks));
    return;
  }
  const auto tokens = std::span(task.tokens).first(blocks * block_tokens());
  const Status named = kv::hash_prompt(
      hasher_, task.scope->policy().hash_key({}), cache_.salts().text(task.scope->salt()),
      task.scope->public_tokens, tokens, cache_.options().block_tokens, load.hashes);
  ASSERT(named.ok(), "the scope's salt and the block size are within the hasher's limits");
}

// Returns another load that is about to bring this one's first block: no page is read twice. What
// another server was only asked to wait for binds nobody but the request that it was promised to.
const Load* Loader::bringing_the_same(const Load& load, std::int64_t now_ns) const {
  for (const auto& other : loads_) {
    if (other.get() == &load || other->task == nullptr || other->is_expecting(now_ns)) continue;
    const bool busy = other->stage == LoadStage::kLookup || other->stage == LoadStage::kReading;
    const bool has = other->stage == LoadStage::kLookup || load.first < other->end;
    if (busy && has && load.first < other->hashes.size() &&
        other->hashes[load.first] == load.hashes[load.first]) {
      return other.get();
    }
  }
  return nullptr;
}

kv::OwnerTag Loader::owner_of(const Load& load, std::uint64_t block) const {
  const kv::CacheScope& scope = *load.task->scope;
  const bool is_public =
      scope.salt() == kv::kPublic || (block + 1) * block_tokens() <= scope.public_tokens;
  if (is_public || !options_.owner_tag) return {};
  return options_.owner_tag(cache_.salts().owner(scope.salt()));
}

kv::PageKey Loader::key_of(const Load& load, std::uint64_t block, std::uint32_t group) const {
  return {.space = *space_, .hash = load.hashes[block], .group = group};
}

PageSearchInputs Loader::inputs(std::span<const kv::memory::AttentionSpec> groups) const {
  return {.space = *space_,
          .groups = groups,
          .block_tokens = cache_.options().block_tokens,
          .stores = options_.stores.size()};
}

void Loader::ask_on(Load& load, std::int64_t now_ns) {
  while (const std::optional<PageSearch::Lookup> lookup = load.search->next()) {
    const kv::StoreTicket ticket = ++tickets_;
    const std::optional<std::size_t> found =
        options_.stores[lookup->store]->find(ticket, lookup->keys);
    if (!found) {
      load.lookup = ticket;
      lookups_[ticket] = &load;
      return;
    }
    load.search->record_found(*found);
  }
  load.end = load.search->end();
  open(load, now_ns);
}

TokensInTiers Loader::tokens_at_hand(const kv::CacheScope& scope, std::span<const TokenId> prompt,
                                     std::span<const kv::BlockHash> hashes,
                                     std::uint64_t tokens_matched) {
  const std::uint64_t blocks = std::min<std::uint64_t>(
      hashes.size(), scope.lookup().findable(prompt).size() / block_tokens());
  const std::uint64_t first = tokens_matched / block_tokens();
  if (!space_ || first >= blocks) return {.end = first * block_tokens()};
  TokensInTiers known;
  PageSearch search(inputs(scope.groups()), hashes.first(blocks), first);
  while (const std::optional<PageSearch::Lookup> lookup = search.next()) {
    kv::PageStore& store = *options_.stores[lookup->store];
    std::optional<std::size_t> found;
    if (!store.asks_network()) {
      const kv::StoreTicket ticket = ++tickets_;
      found = store.find(ticket, lookup->keys);
      if (!found) lookups_[ticket] = nullptr;
    }
    known.answers_later[lookup->store] |= !found;
    search.record_found(found.value_or(0));
  }
  known.end = search.end() * block_tokens();
  if (search.end() == first) return known;
  for (std::uint64_t block = first; block < search.end(); ++block) {
    const std::uint64_t begin = std::max(block * block_tokens(), tokens_matched);
    known.tokens[store_of(search, scope.groups(), block)] += (block + 1) * block_tokens() - begin;
  }
  const std::uint64_t pages =
      kv::memory::pages_to_load(scope.groups(), cache_.options().block_tokens, first, known.end);
  known.seconds = seconds_in_tiers(
      known.tokens, static_cast<double>(pages * options_.page_at(kv::BlockId(0)).size()), reads_,
      {.tokens_per_second = model_rate_.units_per_second(), .mode = options_.load});
  return known;
}

// Reserves blocks for the pages that will come.
void Loader::open(Load& load, std::int64_t now_ns) {
  load.record.tokens_offered =
      std::max(load.record.tokens_offered, (load.end - load.first) * block_tokens());
  if (load.end == load.first) return rest(load);
  const kv::Match match = match_blocks(load);
  if (!load.has_turn && scheduler_.lacks_blocks()) return refuse(load);
  if (match.nodes.size() != load.first) return refuse(load);  // changed during the lookup
  const std::uint64_t woken = cache_.blocks_needed(*load.task->scope, match, match.tokens);
  const std::uint64_t spare = blocks_spare(load.has_turn);
  const std::uint64_t room = spare > woken ? spare - woken : 0;
  if (pages_to_load(load, load.end) > room) {
    const std::uint64_t end = load.first + room / groups();
    if (end == load.first || load.was_cut) return refuse(load);
    if (has_windows(load)) return search_again(load, end, now_ns);
    load.end = end;
  }
  kv::CacheScope& scope = *load.task->scope;
  const bool asks = std::exchange(scope.counts_lookup, false);  // its task will ask
  auto opened = cache_.open(scope, match, load.task->tokens, load.hashes);
  scope.counts_lookup = asks;
  if (std::get_if<kv::OutOfBlocks>(&opened) != nullptr) return refuse(load);
  kv::Sequence& sequence = std::get<kv::Opened>(opened).sequence;
  scope.branch = sequence.branch();
  if (!cache_.reserve_visible(sequence, load.end * block_tokens())) return refuse(load);
  load.blocks.assign(load.end - load.first, {});
  load.sequence = std::move(sequence);
  load.stage = LoadStage::kReading;
  load.was_refused = false;
  load.last_page_ns = now_ns;
  load.from_back = load.task->state == sched::TaskState::kRunning;
  load.next = load.from_back ? load.end : load.first;
}

// There is room up to this block alone: with a shorter end, windows need other pages.
void Loader::search_again(Load& load, std::uint64_t end, std::int64_t now_ns) {
  load.was_cut = true;
  load.search.emplace(inputs(load.groups), std::span<const kv::BlockHash>(load.hashes).first(end),
                      load.first);
  ask_on(load, now_ns);
}

// The pool has as much as the stores. Its blocks may leave before the task's turn.
void Loader::rest(Load& load) {
  if (load.task->state != sched::TaskState::kWaiting) return abandon(load);
  load.stage = LoadStage::kRested;
  if (loses_turn(load)) abandon(load);
}

// Counts a turn that brought nothing. True when that was one too many.
bool Loader::loses_turn(Load& load) {
  return std::exchange(load.has_turn, false) && ++load.turns_lost == kTurnsMax;
}

// The load may try again; its task does not wait for it.
void Loader::refuse(Load& load) {
  load.stage = LoadStage::kNew;
  load.was_refused = true;
  if (loses_turn(load)) abandon(load);
}

// Running tasks keep room to go on, and a load ahead of its turn leaves some to others.
std::uint64_t Loader::blocks_spare(bool has_turn) const {
  const std::uint64_t running = scheduler_.running().size();
  if (running == 0) return cache_.blocks_available();
  const std::uint64_t aside = running * groups() + (has_turn ? 0 : cache_.pool().blocks() / 16);
  return cache_.blocks_available() - std::min(cache_.blocks_available(), aside);
}

}  // namespace pagoda::engine
