// Publishes what a sequence has computed so that other prompts find it: whole blocks are sealed,
// the rest is a partial block (README: P1 to P7).
#include <algorithm>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::kv {

void Cache::commit(Sequence& sequence, std::span<const TokenId> tokens,
                   std::vector<BlockId>* duplicates) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  ASSERT(sequence.tokens_computed() + tokens.size() <= sequence.tokens_reserved(),
         "room is reserved before rows are written");
  while (!tokens.empty()) {
    const std::size_t room = options_.block_tokens - sequence.tail_.size();
    const auto part = tokens.first(std::min(room, tokens.size()));
    sequence.tail_.insert(sequence.tail_.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
    if (sequence.tail_.size() == options_.block_tokens) seal_tail(sequence, duplicates);
  }
  if (options_.share && !sequence.tail_.empty() && !sequence.has_dropped()) publish_tail(sequence);
  release_behind_windows(sequence);
}

// The region of the sequence's next block, `block`.
SaltId Cache::region_of(const Sequence& sequence, std::uint64_t block) const {
  return sequence.scope_.region(tree_.region(sequence.last_node()),
                                (block + 1) * options_.block_tokens);
}

// The node of the block that the sequence fills, if it was published.
std::optional<NodeId> Cache::partial_block(const Sequence& sequence) const {
  if (!sequence.holds(0, sequence.nodes_.size())) return std::nullopt;  // it is being loaded
  const BlockId block = sequence.tables_.front()[sequence.nodes_.size()];
  return pool_.state(block) == BlockState::kFilling ? pool_.owner(block) : std::nullopt;
}

void Cache::seal_tail(Sequence& sequence, std::vector<BlockId>* duplicates) {
  if (sequence.has_dropped()) {  // nobody else may read the block, so that it is never sealed
    ++sequence.blocks_unpublished_;
    return sequence.tail_.clear();
  }
  if (!options_.share) return seal_alone(sequence);
  const std::uint64_t block = sequence.nodes_.size();
  const NodeId parent = sequence.last_node();
  const SaltId region = region_of(sequence, block);
  std::optional<NodeId> node = partial_block(sequence);
  if (node) {
    tree_.extend(*node, std::span(sequence.tail_).subspan(tree_.tokens(*node).size()));
    for (std::uint32_t group = 0; group < groups(); ++group) {
      pool_.seal(sequence.tables_[group][block]);
    }
    node_sealed(sequence, *node);
  } else if (const auto prompt_end = clear_way(parent, region, sequence.tail_)) {
    node = add_node(sequence, region, *prompt_end);
    for (std::uint32_t group = 0; group < groups(); ++group) {
      if (!sequence.holds(group, block)) continue;
      attach_page(*node, group, sequence.tables_[group][block], sequence.request_);
      pool_.seal(sequence.tables_[group][block]);
    }
    node_sealed(sequence, *node);
  } else {
    SearchWork work;
    node = tree_.best_child(parent, region, sequence.tail_, work)->node;
    deduplicate(sequence, *node, block, duplicates);
  }
  stand_on(sequence, *node);
}

// The node is the sequence's next whole block.
void Cache::stand_on(Sequence& sequence, NodeId node) {
  sessions_.passed(sequence.branch_, node);
  note_prompt_end(sequence, node, sequence.nodes_.size());
  const NodeId parent = sequence.last_node();
  tree_.pin(node);
  tree_.unpin(parent);  // its child keeps it
  sequence.nodes_.push_back(node);
  sequence.tail_.clear();
}

bool Cache::commit_existing(Sequence& sequence, std::span<const TokenId> tokens) {
  ASSERT(sequence.cache_ == this && sequence.tail_.empty(), "the sequence is open, between blocks");
  ASSERT(tokens.size() == options_.block_tokens &&
             sequence.tokens_computed() + tokens.size() <= sequence.tokens_reserved(),
         "a whole block with room for it");
  if (!options_.share) return false;
  const std::uint64_t block = sequence.nodes_.size();
  SearchWork work;
  const auto found =
      tree_.best_child(sequence.last_node(), region_of(sequence, block), tokens, work);
  if (!found || found->tokens_shared < tokens.size()) return false;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (sequence.holds(group, block) && !tree_.page(found->node, group)) return false;
  }
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (!sequence.holds(group, block)) continue;
    BlockId& mine = sequence.tables_[group][block];
    const BlockId existing = tree_.page(found->node, group).value();
    hold(existing);
    evictor_.page_used(existing, sequence.request_);
    release(mine);
    mine = existing;
  }
  sequence.tail_.assign(tokens.begin(), tokens.end());
  stand_on(sequence, found->node);
  release_behind_windows(sequence);
  return true;
}

// The node got its last tokens from the sequence: tells the parts that know whole blocks.
void Cache::node_sealed(const Sequence& sequence, NodeId node) {
  hashes_.node_sealed(node, sequence.nodes_.size(), sequence.scope_, sequence.hashes_);
  identities_.node_sealed(node);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (tree_.page(node, group)) evictor_.page_sealed(node, group);
  }
  events_.node_stored(node);
}

// Without sharing no node stands for the block: it is free when its last holder releases it, and
// the sequence stands on its root.
void Cache::seal_alone(Sequence& sequence) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    pool_.seal(sequence.tables_[group][sequence.nodes_.size()]);
  }
  sequence.nodes_.push_back(sequence.scope_.root);
  sequence.tail_.clear();
}

// The block exists already: the sequence goes on with the existing pages and gives up its own;
// where a group's page is missing, its own takes that place.
void Cache::deduplicate(Sequence& sequence, NodeId node, std::uint64_t block,
                        std::vector<BlockId>* duplicates) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (!sequence.holds(group, block)) continue;
    BlockId& mine = sequence.tables_[group][block];
    const std::optional<BlockId> existing = tree_.page(node, group);
    if (!existing) {
      attach_page(node, group, mine, sequence.request_);
      pool_.seal(mine);
      evictor_.page_sealed(node, group);
      events_.page_stored(node, group);
      continue;
    }
    hold(*existing);
    evictor_.page_used(*existing, sequence.request_);
    if (options_.on_deduplicate) options_.on_deduplicate(mine, *existing);
    if (duplicates != nullptr) {
      duplicates->push_back(mine);
    } else {
      release(mine);
    }
    mine = *existing;
    ++blocks_deduplicated_;
  }
}

void Cache::attach_page(NodeId node, std::uint32_t group, BlockId block,
                        const RequestStats& request) {
  tree_.set_page(node, group, block);
  pool_.set_owner(block, node);
  evictor_.page_attached(node, block, request);
}

// A node for the block that the sequence fills.
NodeId Cache::add_node(const Sequence& sequence, SaltId region, std::uint32_t prompt_end) {
  const NodeId node = tree_.insert(sequence.last_node(), region, sequence.tail_);
  salts_.hold(region);
  fit_parts(node);
  // Only nodes of its own region belong to a session: public nodes belong to everybody.
  if (region == sequence.scope_.salt) sessions_.made(sequence.branch_, node);
  tree_.set_prompt_end(node, prompt_end);
  return node;
}

// The node is new: the parts that keep something of each node make room for it.
void Cache::fit_parts(NodeId node) {
  retention_.node_added(node);
  sessions_.node_added(node);
  evictor_.node_added(node);
  hashes_.node_added(node);
  identities_.node_added(node);
}

void Cache::publish_tail(Sequence& sequence) {
  const std::uint64_t block = sequence.nodes_.size();
  if (const std::optional<NodeId> leaf = partial_block(sequence)) {
    // A fork that shares the block may have published the same tokens already.
    const std::size_t known = tree_.tokens(*leaf).size();
    if (sequence.tail_.size() > known) {
      tree_.extend(*leaf, std::span(sequence.tail_).subspan(known));
    }
    note_prompt_end(sequence, *leaf, block);
    return;
  }
  const NodeId parent = sequence.last_node();
  const SaltId region = region_of(sequence, block);
  const auto prompt_end = clear_way(parent, region, sequence.tail_);
  if (!prompt_end) return;
  const NodeId leaf = add_node(sequence, region, *prompt_end);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    attach_page(leaf, group, sequence.tables_[group][block], sequence.request_);
  }
  note_prompt_end(sequence, leaf, block);
}

// The sequence's block is the node's: notes where the prompt ends in it, if it does.
void Cache::note_prompt_end(const Sequence& sequence, NodeId node, std::uint64_t block) {
  if (const auto end = sequence.prompt_end_in(block)) tree_.set_prompt_end(node, *end);
}

// May a child with these tokens be inserted? Nothing when a child begins with them. A partial block
// that they begin with makes way: they serve whoever it would have served, also the request whose
// prompt ended in it, so that the inserted child gets its prompt's end (0: no prompt ended there).
std::optional<std::uint32_t> Cache::clear_way(NodeId parent, SaltId region,
                                              std::span<const TokenId> tokens) {
  SearchWork work;
  const auto found = tree_.best_child(parent, region, tokens, work);
  if (!found) return 0;
  if (found->tokens_shared == tokens.size()) return std::nullopt;
  if (found->tokens_shared < tree_.tokens(found->node).size()) return 0;
  const std::uint32_t prompt_end = tree_.prompt_end(found->node);
  evictor_.remove(found->node);
  return prompt_end;
}

void Cache::release_behind_windows(Sequence& sequence) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    release_before(sequence, group, sequence.tokens_computed());
  }
}

// Releases what a query behind `tokens` tokens does not see, of the blocks that the sequence has.
void Cache::release_before(Sequence& sequence, std::uint32_t group, std::uint64_t tokens) {
  const std::vector<BlockId>& table = sequence.tables_[group];
  const memory::BlocksKept kept(sequence.scope_.groups[group], tokens, options_.block_tokens);
  const bool by_policy = options_.groups[group].window == 0;  // the model has no window there
  for (std::uint64_t& held = sequence.first_held_[group]; held < kept.first; ++held) {
    if (held >= table.size() || held < kept.sinks) continue;
    if (by_policy) ++pages_dropped_;
    release(table[held]);
  }
}

}  // namespace pagoda::kv
