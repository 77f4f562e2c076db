#include "kv/cache.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {
namespace {

std::uint64_t blocks_for(std::uint64_t tokens, std::uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace

Cache::Cache(const CacheOptions& options)
    : options_(options),
      events_(options.events),
      pool_(options.blocks),
      tree_({.block_tokens = options.block_tokens,
             .groups = static_cast<std::uint32_t>(options.groups.size()),
             .hash_seed = options.hash_seed}),
      created_(options.policy->reads_created ? options.blocks : 0, 0),
      pins_(options.blocks, 0),
      salts_(options.hash_seed) {
  // A resident node has a page of every full group.
  const auto full =
      std::count(options.groups.begin(), options.groups.end(), memory::AttentionSpec{.window = 0});
  const std::size_t nodes = options.blocks / std::max<std::size_t>(1, full) + 1;
  tree_.reserve(nodes);
  guards_.reserve(nodes);
  if (options.policy->make_order != nullptr) {
    ordered_.emplace(options.policy->make_order(options.blocks), options.blocks);
  } else {
    queue_.reserve(options.blocks);
  }
  if (options.live_curve && options.share) {
    curve_.emplace(LiveCurveOptions{
        .blocks = options.blocks, .groups = groups(), .block_tokens = block_tokens_weighed()});
  }
  if (options.eviction_records_max > 0) {
    eviction_log_.emplace(options.eviction_records_max);
    used_.resize(options.blocks, 0);
  }
  if (keeps_identities()) identities_.reserve(nodes);
  options_.hash_blocks = options.hash_blocks || events_ != nullptr;
  if (options_.hash_blocks) hashes_.reserve(nodes);
  const bool has_quotas = options.quota_blocks_private > 0 || options.quota_blocks_public > 0;
  if (has_quotas || options.retain_blocks_max > 0) heaps_.emplace(options.blocks);
  if (has_quotas) {
    quotas_.emplace(QuotaQueues::Options{options.quota_blocks_private, options.quota_blocks_public},
                    *heaps_);
  }
  if (options.retain_blocks_max > 0) {
    retentions_.emplace(RetentionTable::Options{.blocks_account_max = options.retain_blocks_max,
                                                .blocks_max = options.blocks / 2,
                                                .node_blocks = groups()},
                        salts_);
    retentions_->reserve(nodes);
  }
}

Result<CacheScope> Cache::scope(std::string_view space, std::string_view salt,
                                std::string_view adapter, OwnerId owner) {
  RETURN_IF_ERROR(check_keys({.adapter = adapter, .salt = salt}));
  const auto [root, is_new] =
      spaces_.try_emplace({std::string(space), std::string(adapter)}, NodeId());
  if (is_new) root->second = new_root(adapter);
  const SaltId region = salts_.acquire(salt, owner);
  if (quotas_) quotas_->fit(salts_.account_numbers());
  return CacheScope(*this, root->second, region, owner);
}

std::variant<Opened, OutOfBlocks> Cache::open(const CacheScope& scope, const Match& match,
                                              std::span<const TokenId> prompt,
                                              std::span<const BlockHash> hashes) {
  const OutOfBlocks cost = {blocks_needed(match, match.tokens), blocks_available()};
  if (cost.blocks_needed > cost.blocks_available) return cost;
  Sequence sequence(*this, scope.root(), scope.salt(), groups(), options_.block_tokens);
  salts_.hold(sequence.salt_);
  sequence.account_ = account_of(scope.salt(), scope.owner());
  sequence.public_tokens_ = scope.public_tokens;
  sequence.prompt_tokens_ = prompt.size();
  sequence.hashes_.assign(hashes.begin(), hashes.end());
  sequence.request_ = {
      .blocks_found = match.nodes.size(),
      .blocks_fresh = blocks_for(prompt.size(), options_.block_tokens) - match.nodes.size(),
      .goes_on = !match.nodes.empty() && tree_.children(match.nodes.back()) <= 2,
      .priority = scope.priority};
  sequence.nodes_ = match.nodes;
  tree_.pin(last_node(sequence));
  for (std::uint32_t group = 0; group < groups(); ++group) {
    std::vector<BlockId>& table = sequence.tables_[group];
    sequence.first_held_[group] =
        memory::first_block_kept(options_.groups[group], match.tokens, options_.block_tokens);
    for (std::uint64_t block = 0; block < match.nodes.size(); ++block) {
      const bool held = block >= sequence.first_held_[group];
      table.push_back(held ? tree_.page(match.nodes[block], group).value() : BlockId(0));
      if (held) hold(table.back());
    }
    // As they will be released: the head was used last.
    for (std::uint64_t block = match.nodes.size(); block-- > sequence.first_held_[group];) {
      note_use(table[block], sequence.request_);
    }
  }
  std::vector<Copy> copies;
  if (match.partial) {
    // The sources are held before room is made, so that they are not what goes.
    for (std::uint32_t group = 0; group < groups(); ++group) {
      const BlockId from = tree_.page(*match.partial, group).value();
      hold(from);
      note_use(from, sequence.request_);
      ++pins_[from.value()];
      copies.push_back({from, BlockId(0), match.partial_tokens});
    }
    make_room(groups(), sequence.account_);
    for (std::uint32_t group = 0; group < groups(); ++group) {
      copies[group].to = take_block();
      sequence.tables_[group].push_back(copies[group].to);
    }
    const auto tail =
        prompt.subspan(match.nodes.size() * options_.block_tokens, match.partial_tokens);
    sequence.tail_.assign(tail.begin(), tail.end());
  }
  if (curve_ && scope.counts_lookup) note_asked(sequence, prompt);
  return Opened{std::move(sequence), std::move(copies)};
}

std::uint64_t Cache::blocks_needed(const Match& match, std::uint64_t tokens) const {
  std::uint64_t woken = 0;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::uint64_t first =
        memory::first_block_kept(options_.groups[group], match.tokens, options_.block_tokens);
    for (std::uint64_t block = first; block < match.nodes.size(); ++block) {
      woken += is_available(match.nodes[block], group) ? 1 : 0;
    }
    if (match.partial) woken += is_available(*match.partial, group) ? 1 : 0;
  }
  const std::uint64_t blocks = blocks_for(std::max(tokens, match.tokens), options_.block_tokens);
  return woken + (blocks - match.nodes.size()) * groups();
}

std::uint64_t Cache::blocks_needed(const Sequence& sequence, std::uint64_t tokens) const {
  const std::uint64_t blocks_now = sequence.tables_.front().size();
  const std::uint64_t blocks_then = std::max(blocks_now, blocks_for(tokens, options_.block_tokens));
  return (blocks_then - blocks_now + (is_tail_shared(sequence) ? 1 : 0)) * groups();
}

std::uint64_t Cache::blocks_held_alone(const Sequence& sequence) const {
  std::uint64_t blocks = 0;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const auto held = sequence.table(group).subspan(sequence.first_held_[group]);
    blocks += static_cast<std::uint64_t>(std::count_if(
        held.begin(), held.end(), [&](BlockId block) { return pool_.references(block) == 1; }));
  }
  return blocks;
}

// Does another sequence hold the block that this one fills? A copy that reads it does not matter:
// it reads rows that are there, and what is written comes after them.
bool Cache::is_tail_shared(const Sequence& sequence) const {
  if (sequence.tail_.empty()) return false;
  const BlockId block = sequence.tables_.front()[sequence.nodes_.size()];
  return pool_.references(block) - pins_[block.value()] > 1;
}

// Is the page one of blocks_available() now, and no more once it is held?
bool Cache::is_available(NodeId node, std::uint32_t group) const {
  if (pool_.state(tree_.page(node, group).value()) != BlockState::kIdle) return false;
  return options_.groups[group].window != 0 || !guards_[node.value()].is_guarded;
}

std::variant<std::vector<Copy>, OutOfBlocks> Cache::reserve(Sequence& sequence,
                                                            std::uint64_t tokens) {
  const OutOfBlocks cost = {blocks_needed(sequence, tokens), blocks_available()};
  if (cost.blocks_needed > cost.blocks_available) return cost;
  make_room(cost.blocks_needed, sequence.account_);

  const std::uint64_t blocks = blocks_for(tokens, options_.block_tokens);
  const std::uint64_t tail_block = sequence.nodes_.size();
  const bool shared = is_tail_shared(sequence);
  std::vector<Copy> copies;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    std::vector<BlockId>& table = sequence.tables_[group];
    if (shared) {  // the sequence's hold on the old block becomes the copy's
      const BlockId own = take_block();
      ++pins_[table[tail_block].value()];
      copies.push_back({table[tail_block], own, static_cast<std::uint32_t>(sequence.tail_.size())});
      table[tail_block] = own;
    }
    while (table.size() < blocks) table.push_back(take_block());
  }
  return copies;
}

std::uint64_t Cache::blocks_to_load(std::uint64_t blocks_matched, std::uint64_t tokens) const {
  const std::uint64_t end = blocks_for(tokens, options_.block_tokens);
  std::uint64_t blocks = 0;
  for (const memory::AttentionSpec& spec : options_.groups) {
    const std::uint64_t first =
        std::max(blocks_matched, memory::first_block_kept(spec, tokens, options_.block_tokens));
    blocks += end - std::min(end, first);
  }
  return blocks;
}

bool Cache::reserve_visible(Sequence& sequence, std::uint64_t tokens) {
  ASSERT(sequence.tail_.empty() && sequence.tables_.front().size() == sequence.nodes_.size(),
         "the sequence stands between two blocks, with room for no more");
  const std::uint64_t needed = blocks_to_load(sequence.nodes_.size(), tokens);
  if (needed > blocks_available()) return false;
  make_room(needed, sequence.account_);
  const std::uint64_t end = blocks_for(tokens, options_.block_tokens);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    std::vector<BlockId>& table = sequence.tables_[group];
    const std::uint64_t first =
        memory::first_block_kept(options_.groups[group], tokens, options_.block_tokens);
    std::uint64_t& held = sequence.first_held_[group];
    for (; held < std::min<std::uint64_t>(first, table.size()); ++held) release(table[held]);
    held = std::max(held, first);
    while (table.size() < end) table.push_back(table.size() < held ? BlockId(0) : take_block());
  }
  return true;
}

Sequence Cache::fork(const Sequence& sequence) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  Sequence twin(*this, sequence.root_, sequence.salt_, groups(), options_.block_tokens);
  salts_.hold(twin.salt_);
  twin.account_ = sequence.account_;
  twin.public_tokens_ = sequence.public_tokens_;
  twin.prompt_tokens_ = sequence.prompt_tokens_;
  twin.request_ = sequence.request_;
  twin.nodes_ = sequence.nodes_;
  tree_.pin(last_node(twin));
  twin.tail_ = sequence.tail_;
  twin.first_held_ = sequence.first_held_;
  const std::uint64_t blocks = sequence.nodes_.size() + (sequence.tail_.empty() ? 0 : 1);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const auto table = sequence.table(group).first(blocks);
    twin.tables_[group].assign(table.begin(), table.end());
    for (std::uint64_t b = twin.first_held_[group]; b < blocks; ++b) pool_.share(table[b]);
  }
  return twin;
}

void Cache::close(Sequence& sequence) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  note_ended(sequence);
  if (curve_) note_closed(sequence);
  // From the tail to the head, so that the head was used last and the tail leaves first.
  for (std::uint64_t block = sequence.tables_.front().size(); block-- > 0;) {
    for (std::uint32_t group = 0; group < groups(); ++group) {
      if (block >= sequence.first_held_[group]) release(sequence.tables_[group][block]);
    }
  }
  tree_.unpin(last_node(sequence));
  settle(last_node(sequence));
  salts_.release(sequence.salt_);
  sequence.cache_ = nullptr;
}

void Cache::copied(const Copy& copy) {
  ASSERT(pins_[copy.from.value()] > 0, "a copy is reported once");
  --pins_[copy.from.value()];
  release(copy.from);
}

void Cache::hold(BlockId block) {
  if (pool_.state(block) == BlockState::kIdle) {
    pool_.acquire(block);
    update_guard(pool_.owner(block).value());
  } else {
    pool_.share(block);
  }
}

void Cache::release(BlockId block) {
  note_used(block);
  release(block, ++now_);
}

// `used`: until when. It is kept for a block that others hold, too: they may only pin it.
void Cache::release(BlockId block, Tick used) {
  if (pool_.references(block) > 1) return pool_.unshare(block, used);
  const std::optional<NodeId> node = pool_.owner(block);
  const bool filling = pool_.state(block) == BlockState::kFilling;
  if (filling && !node) return pool_.drop(block);
  if (filling) {
    pool_.park_partial(block, used);
  } else {
    pool_.release(block, used);
  }
  if (!node) return pool_.evict(block);  // its node made way while a copy was reading it
  update_guard(*node);
  queue_node(*node);  // its other pages may have waited for this one
  drop_retired(*node);
}

BlockId Cache::take_block() {
  const std::optional<BlockId> block = pool_.allocate();
  ASSERT(block.has_value(), "room was made before");
  note_created(*block);
  return *block;
}

NodeId Cache::new_root(std::string_view adapter) {
  const NodeId root = tree_.add_root();
  fit_tables(root);
  if (options_.hash_blocks) hashes_[root.value()] = root_hash();
  if (!adapter.empty()) adapters_.emplace(root, adapter);
  return root;
}

NodeId Cache::add_node(NodeId parent, SaltId region, std::span<const TokenId> tokens,
                       std::uint32_t prompt_end) {
  const NodeId node = tree_.insert(parent, region, tokens);
  salts_.hold(region);
  fit_tables(node);
  tree_.set_prompt_end(node, prompt_end);
  guards_[node.value()].was_retained = false;
  return node;
}

void Cache::erase_node(NodeId node) {
  const SaltId region = tree_.region(node);
  if (retentions_) retentions_->erase(node);
  tree_.erase(node);
  salts_.release(region);
}

void Cache::fit_tables(NodeId node) {
  if (retentions_) retentions_->fit(node);
  if (node.value() < guards_.size()) return;
  guards_.resize(node.value() + 1);
  if (options_.hash_blocks) hashes_.resize(node.value() + 1);
  if (keeps_identities()) identities_.resize(node.value() + 1);
}

}  // namespace pagoda::kv
