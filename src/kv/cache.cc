#include "kv/cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "kv/evict/demotion.h"

namespace pagoda::kv {

namespace {

std::uint64_t blocks_for(std::uint64_t tokens, std::uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace

Result<CacheScope> Cache::scope(std::string_view space, std::string_view salt,
                                std::string_view adapter, OwnerId owner, const KvPolicy& policy) {
  RETURN_IF_ERROR(check_keys({.adapter = policy.hash_key(adapter), .salt = salt}));
  Namespace& found = find_namespace({std::string(space), std::string(adapter), policy.of_rows()});
  const SaltId region = salts_.acquire(salt, owner);
  evictor_.account_opened();
  return CacheScope(salts_, found, policy, region, owner);
}

// The namespace of that name, which is made when it is new.
Namespace& Cache::find_namespace(const NamespaceName& name) {
  if (Namespace* const found = namespaces_.find(name)) return *found;
  Namespace* made = nullptr;
  if (!name.policy.is_full()) {
    made = namespaces_.rename_unused(name, [this](NodeId root) { return tree_.is_unused(root); });
  }
  if (made == nullptr) {
    const NodeId root = tree_.add_root(name.policy.is_full() ? Bounded::kNo : Bounded::kYes);
    fit_parts(root);
    made = &namespaces_.add(name, root);
  }
  made->groups = name.policy.of(options_.groups);
  hashes_.root_added(made->root, name.policy.hash_key(name.adapter));
  return *made;
}

std::variant<Opened, OutOfBlocks> Cache::open(const CacheScope& scope, const Match& match,
                                              std::span<const TokenId> prompt,
                                              std::span<const BlockHash> hashes) {
  const OutOfBlocks cost = {blocks_needed(scope, match, match.tokens), blocks_available()};
  if (cost.blocks_needed > cost.blocks_available) return cost;
  Sequence sequence(*this, scope.lookup(), options_.block_tokens);
  salts_.hold(scope.salt());
  sequence.tenant_ = salts_.tenant_key(scope.salt(), scope.owner());
  sequence.prompt_tokens_ = prompt.size();
  sequence.hashes_.assign(hashes.begin(), hashes.end());
  sequence.request_ = {
      .blocks_found = match.nodes.size(),
      .blocks_fresh = blocks_for(prompt.size(), options_.block_tokens) - match.nodes.size(),
      .goes_on = !match.nodes.empty() && tree_.children(match.nodes.back()) <= 2,
      .priority = scope.priority};
  note_session(sequence, scope, match);
  hold_match(sequence, match);
  std::vector<Copy> copies;
  if (match.partial) {
    // The sources are held before room is made, so that they are not evicted for it.
    for (std::uint32_t group = 0; group < groups(); ++group) {
      const BlockId from = tree_.page(*match.partial, group).value();
      hold(from);
      evictor_.page_used(from, sequence.request_);
      pool_.pin(from);
      copies.push_back({from, BlockId(0), match.partial_tokens, group});
    }
    evictor_.make_room(groups(), sequence.tenant_);
    for (std::uint32_t group = 0; group < groups(); ++group) {
      copies[group].to = take_block();
      sequence.tables_[group].push_back(copies[group].to);
    }
    const auto tail =
        prompt.subspan(match.nodes.size() * options_.block_tokens, match.partial_tokens);
    sequence.tail_.assign(tail.begin(), tail.end());
  }
  if (scope.counts_lookup) {
    curve_.request_opened(sequence.scope_, sequence.nodes_, prompt, sequence.request_);
  }
  return Opened{std::move(sequence), std::move(copies)};
}

std::uint64_t Cache::demote(const CacheScope& scope, const Match& match) {
  if (match.nodes.empty() || !sessions_.enabled()) return 0;
  const std::vector<NodeId> nodes =
      nodes_to_demote(tree_, pool_, evictor_, match.nodes, scope.salt());
  sessions_.close_chain(nodes);
  return nodes.size();
}

std::vector<NodeId> Cache::take_closed(std::size_t nodes_max) {
  std::vector<NodeId> nodes = sessions_.take_closed(nodes_max);
  for (const NodeId node : nodes) evictor_.end_own_grant(node);
  return nodes;
}

// May the node, which its session leaves behind, go first? What its own account retains is retained
// no more.
bool Cache::may_supersede(NodeId node) {
  if (!is_idle(tree_, pool_, node) || evictor_.is_retained_by_others(node)) return false;
  evictor_.end_own_grant(node);
  return true;
}

void Cache::note_session(Sequence& sequence, const CacheScope& scope, const Match& match) {
  if (!scope.is_use) {
    sequence.branch_.number = BranchRef::kNoUse;
    return;
  }
  sequence.branch_ = sessions_.open({.salt = scope.salt(),
                                     .key = scope.session,
                                     .before = scope.branch,
                                     .found = match.nodes,
                                     .partial = match.partial,
                                     .tokens_found = match.tokens,
                                     .block_tokens = options_.block_tokens,
                                     .first_turn_tokens = scope.first_turn_tokens,
                                     .now_ns = clock_.time_ns},
                                    [this](NodeId node) { return may_supersede(node); });
}

// The sequence holds the pages of the match's whole blocks and stands on the last of them.
void Cache::hold_match(Sequence& sequence, const Match& match) {
  sequence.nodes_ = match.nodes;
  tree_.pin(sequence.last_node());
  for (std::uint32_t group = 0; group < groups(); ++group) {
    std::vector<BlockId>& table = sequence.tables_[group];
    const memory::BlocksKept kept(sequence.scope_.groups[group], match.tokens,
                                  options_.block_tokens);
    sequence.first_held_[group] = kept.first;
    for (std::uint64_t block = 0; block < match.nodes.size(); ++block) {
      const bool held = kept.contains(block);
      table.push_back(held ? tree_.page(match.nodes[block], group).value() : BlockId(0));
      if (held) hold(table.back());
    }
    // Uses are told in the order in which the blocks will be released: the head was used last.
    for (std::uint64_t block = match.nodes.size(); block-- > 0;) {
      if (kept.contains(block)) evictor_.page_used(table[block], sequence.request_);
    }
  }
}

std::uint64_t Cache::blocks_needed(const CacheScope& scope, const Match& match,
                                   std::uint64_t tokens) const {
  std::uint64_t acquired = 0;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const memory::BlocksKept kept(scope.groups()[group], match.tokens, options_.block_tokens);
    for (std::uint64_t block = 0; block < match.nodes.size(); ++block) {
      if (!kept.contains(block)) continue;
      acquired += evictor_.is_available(match.nodes[block], group) ? 1 : 0;
    }
    if (match.partial) acquired += evictor_.is_available(*match.partial, group) ? 1 : 0;
  }
  const std::uint64_t blocks = blocks_for(std::max(tokens, match.tokens), options_.block_tokens);
  return acquired + (blocks - match.nodes.size()) * groups();
}

std::uint64_t Cache::blocks_needed(const Sequence& sequence, std::uint64_t tokens) const {
  const std::uint64_t blocks_now = sequence.tables_.front().size();
  const std::uint64_t blocks_then = std::max(blocks_now, blocks_for(tokens, options_.block_tokens));
  return (blocks_then - blocks_now + (is_tail_shared(sequence) ? 1 : 0)) * groups();
}

// Does another sequence hold the block that this one fills? A copy that reads the block does not
// matter: it reads rows that are there, and what is written comes after them.
bool Cache::is_tail_shared(const Sequence& sequence) const {
  if (sequence.tail_.empty()) return false;
  return pool_.users(sequence.tables_.front()[sequence.blocks_whole()]) > 1;
}

std::variant<std::vector<Copy>, OutOfBlocks> Cache::reserve(Sequence& sequence,
                                                            std::uint64_t tokens) {
  const OutOfBlocks cost = {blocks_needed(sequence, tokens), blocks_available()};
  if (cost.blocks_needed > cost.blocks_available) return cost;
  evictor_.make_room(cost.blocks_needed, sequence.tenant_);

  const std::uint64_t blocks = blocks_for(tokens, options_.block_tokens);
  const std::uint64_t tail_block = sequence.blocks_whole();
  const bool shared = is_tail_shared(sequence);
  std::vector<Copy> copies;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    std::vector<BlockId>& table = sequence.tables_[group];
    if (shared) {  // the sequence's hold on the old block becomes the copy's
      const BlockId own = take_block();
      pool_.pin(table[tail_block]);
      const auto rows = static_cast<std::uint32_t>(sequence.tail_.size());
      copies.push_back({table[tail_block], own, rows, group});
      table[tail_block] = own;
    }
    while (table.size() < blocks) table.push_back(take_block());
  }
  return copies;
}

void Cache::release_unwritten(Sequence& sequence) {
  for (std::vector<BlockId>& table : sequence.tables_) {
    for (; table.size() > sequence.blocks_computed(); table.pop_back()) release(table.back());
  }
}

bool Cache::reserve_visible(Sequence& sequence, std::uint64_t tokens) {
  ASSERT(sequence.tail_.empty() && sequence.tables_.front().size() == sequence.nodes_.size(),
         "the sequence stands between two blocks, with room for no more");
  const std::uint64_t needed = memory::pages_to_load(sequence.scope_.groups, options_.block_tokens,
                                                     sequence.nodes_.size(), tokens);
  if (needed > blocks_available()) return false;
  evictor_.make_room(needed, sequence.tenant_);
  const std::uint64_t end = blocks_for(tokens, options_.block_tokens);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    std::vector<BlockId>& table = sequence.tables_[group];
    release_before(sequence, group, tokens);
    const memory::BlocksKept kept(sequence.scope_.groups[group], tokens, options_.block_tokens);
    while (table.size() < end) {
      table.push_back(kept.contains(table.size()) ? take_block() : BlockId(0));
    }
  }
  return true;
}

Sequence Cache::fork(const Sequence& sequence) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  Sequence forked(*this, sequence.scope_, options_.block_tokens);
  salts_.hold(forked.scope_.salt);
  forked.tenant_ = sequence.tenant_;
  forked.prompt_tokens_ = sequence.prompt_tokens_;
  forked.request_ = sequence.request_;
  forked.branch_ = sequence.branch_;
  sessions_.hold(forked.branch_);
  forked.nodes_ = sequence.nodes_;
  tree_.pin(forked.last_node());
  forked.tail_ = sequence.tail_;
  forked.first_held_ = sequence.first_held_;
  forked.blocks_unpublished_ = sequence.blocks_unpublished_;
  forked.selection_ = sequence.selection_;
  const std::uint64_t blocks = sequence.blocks_computed();
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const auto table = sequence.table(group).first(blocks);
    forked.tables_[group].assign(table.begin(), table.end());
    for (std::uint64_t b = 0; b < blocks; ++b) {
      if (forked.holds(group, b)) pool_.share(table[b]);
    }
  }
  return forked;
}

void Cache::close(Sequence& sequence) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  if (const std::uint64_t blocks = sequence.blocks_computed(); blocks > 0) {
    for (std::uint32_t group = 0; group < groups(); ++group) {
      if (!sequence.holds(group, blocks - 1)) continue;
      const BlockId last = sequence.tables_[group][blocks - 1];
      if (pool_.owner(last)) evictor_.request_ended(last);
    }
  }
  curve_.request_closed(sequence.nodes_, sequence.request_,
                        sequence.tail_.empty() && sequence.blocks_unpublished_ == 0);
  // From the tail to the head, so that the head was used last and the tail leaves first.
  for (std::uint64_t block = sequence.tables_.front().size(); block-- > 0;) {
    for (std::uint32_t group = 0; group < groups(); ++group) {
      if (sequence.holds(group, block)) release(sequence.tables_[group][block]);
    }
  }
  tree_.unpin(sequence.last_node());
  evictor_.settle(sequence.last_node());
  sessions_.release(sequence.branch_, clock_.time_ns);
  salts_.release(sequence.scope_.salt);
  sequence.cache_ = nullptr;
}

void Cache::copied(const Copy& copy) {
  pool_.unpin(copy.from);
  release(copy.from);
}

std::optional<BlockId> Cache::pin_page(NodeId node, const BlockHash& hash, std::uint32_t group) {
  if (!hashes_.is_hash_of(node, hash) || !tree_.is_live(node) || !tree_.is_whole(node) ||
      salts_.is_retired(tree_.region(node))) {
    return std::nullopt;
  }
  const std::optional<BlockId> page = tree_.page(node, group);
  if (!page) return std::nullopt;
  hold(*page);
  pool_.pin(*page);
  return page;
}

void Cache::unpin_page(BlockId block) {
  pool_.unpin(block);
  release_at(block, pool_.last_use(block));
}

Result<Retained> Cache::retain(const Sequence& sequence, const RetainTerms& terms) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  if (!retention_.enabled() || !options_.share) {
    return Error{ErrorCode::kUnsupported, retention_.enabled()
                                              ? "nothing stays: prefix caching is off"
                                              : "nothing is retained: the budget is 0"};
  }
  return evictor_.retain(sequence.scope_.salt, terms, sequence.nodes_);
}

void Cache::advance_time(std::int64_t now_ns) {
  clock_.time_ns = std::max(clock_.time_ns, now_ns);
  evictor_.release_due();
}

void Cache::clear(std::optional<OwnerId> owner) {
  if (owner) {
    sessions_.forget(*owner);
    evictor_.clear(*owner);
  } else {
    sessions_.forget_all();
    evictor_.clear();
  }
}

void Cache::hold(BlockId block) {
  if (pool_.state(block) != BlockState::kIdle) return pool_.share(block);
  pool_.acquire(block);
  evictor_.page_held(pool_.owner(block).value());
}

void Cache::release(BlockId block, bool by_policy) {
  if (by_policy) ++pages_dropped_;
  history_.block_released(block);
  release_at(block, ++clock_.tick);
}

// The last use is set for a block that others hold, too: they may only pin it.
void Cache::release_at(BlockId block, Tick last_use) {
  if (pool_.references(block) > 1) return pool_.unshare(block, last_use);
  const std::optional<NodeId> node = pool_.owner(block);
  const bool filling = pool_.state(block) == BlockState::kFilling;
  if (filling && !node) return pool_.drop(block);
  if (filling) {
    pool_.park_partial(block, last_use);
  } else {
    pool_.release(block, last_use);
  }
  if (!node) return pool_.evict(block);  // its node made way while a copy was reading it
  evictor_.page_released(*node);
}

BlockId Cache::take_block() {
  const std::optional<BlockId> block = pool_.allocate();
  ASSERT(block.has_value(), "room was made before");
  evictor_.block_allocated(*block);
  return *block;
}

}  // namespace pagoda::kv
