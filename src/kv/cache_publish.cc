// What a sequence has computed becomes findable: whole blocks are sealed, the rest is a partial
// block.
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
  if (options_.share && !sequence.tail_.empty()) publish_tail(sequence);
  release_behind_windows(sequence);
}

SaltId Cache::region_of(const Sequence& sequence, std::uint64_t block) const {
  const bool is_public = (block + 1) * options_.block_tokens <= sequence.public_tokens_;
  const bool below_private =
      !sequence.nodes_.empty() && tree_.region(sequence.nodes_.back()) != kPublic;
  return is_public && !below_private ? kPublic : sequence.salt_;
}

NodeId Cache::last_node(const Sequence& sequence) const {
  return sequence.nodes_.empty() ? sequence.root_ : sequence.nodes_.back();
}

// The node that the sequence's unfinished block is known by, if it is.
std::optional<NodeId> Cache::partial_block(const Sequence& sequence) const {
  if (!sequence.holds(0, sequence.nodes_.size())) return std::nullopt;  // it is being brought
  const BlockId block = sequence.tables_.front()[sequence.nodes_.size()];
  return pool_.state(block) == BlockState::kFilling ? pool_.owner(block) : std::nullopt;
}

void Cache::seal_tail(Sequence& sequence, std::vector<BlockId>* duplicates) {
  if (!options_.share) return seal_alone(sequence);
  const std::uint64_t block = sequence.nodes_.size();
  const NodeId parent = last_node(sequence);
  const SaltId region = region_of(sequence, block);
  std::optional<NodeId> node = partial_block(sequence);
  if (node) {
    tree_.extend(*node, std::span(sequence.tail_).subspan(tree_.tokens(*node).size()));
    for (std::uint32_t group = 0; group < groups(); ++group) {
      pool_.seal(sequence.tables_[group][block]);
    }
    note_whole(sequence, *node);
  } else if (const auto prompt_end = clear_way(parent, region, sequence.tail_)) {
    node = add_node(parent, region, sequence.tail_, *prompt_end);
    for (std::uint32_t group = 0; group < groups(); ++group) {
      if (!sequence.holds(group, block)) continue;
      adopt(*node, group, sequence.tables_[group][block], sequence.request_);
      pool_.seal(sequence.tables_[group][block]);
    }
    note_whole(sequence, *node);
  } else {
    SearchWork work;
    node = tree_.best_child(parent, region, sequence.tail_, work)->node;
    deduplicate(sequence, *node, block, duplicates);
  }
  stand_on(sequence, *node);
}

// The node is the sequence's next whole block.
void Cache::stand_on(Sequence& sequence, NodeId node) {
  note_prompt_end(sequence, node, sequence.nodes_.size());
  const NodeId parent = last_node(sequence);
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
      tree_.best_child(last_node(sequence), region_of(sequence, block), tokens, work);
  if (!found || found->tokens_shared < tokens.size()) return false;
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (sequence.holds(group, block) && !tree_.page(found->node, group)) return false;
  }
  for (std::uint32_t group = 0; group < groups(); ++group) {
    if (!sequence.holds(group, block)) continue;
    BlockId& mine = sequence.tables_[group][block];
    const BlockId existing = tree_.page(found->node, group).value();
    hold(existing);
    note_use(existing, sequence.request_);
    release(mine);
    mine = existing;
  }
  sequence.tail_.assign(tokens.begin(), tokens.end());
  stand_on(sequence, found->node);
  release_behind_windows(sequence);
  return true;
}

void Cache::note_whole(const Sequence& sequence, NodeId node) {
  set_hash(sequence, node);
  identify(node);
  emit_page_events(CacheEventKind::kStored, node);
}

// Without sharing no node stands for the block: it is free when its last holder lets go, and the
// sequence stands on its root.
void Cache::seal_alone(Sequence& sequence) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    pool_.seal(sequence.tables_[group][sequence.nodes_.size()]);
  }
  sequence.nodes_.push_back(sequence.root_);
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
      adopt(node, group, mine, sequence.request_);
      pool_.seal(mine);
      note_sealed(node, group);
      emit_event(CacheEventKind::kStored, node, group);
      continue;
    }
    hold(*existing);
    note_use(*existing, sequence.request_);
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

void Cache::adopt(NodeId node, std::uint32_t group, BlockId block, const RequestStats& request) {
  tree_.set_page(node, group, block);
  pool_.set_owner(block, node);
  if (ordered_) ordered_->order().entered(block, use_of(node, request));
  salts_.charge(tree_.region(node));
  note_charge(tree_.region(node));
  update_guard(node);
}

// A freshly whole block is hashed: as the caller computed it, or here when the chain above it is
// not the one the caller had in mind.
void Cache::set_hash(const Sequence& sequence, NodeId node) {
  if (!options_.hash_blocks) return;
  const NodeId parent = tree_.parent(node);
  const bool salt_enters = tree_.region(node) != tree_.region(parent);
  const std::uint64_t block = sequence.nodes_.size();
  const std::uint64_t salt_block = sequence.public_tokens_ / options_.block_tokens;
  const bool as_computed = block < sequence.hashes_.size() &&
                           (block == 0 || hashes_[parent.value()] == sequence.hashes_[block - 1]) &&
                           (sequence.salt_ == kPublic || salt_enters == (block == salt_block));
  if (as_computed) {
    hashes_[node.value()] = sequence.hashes_[block];
    return;
  }
  const auto adapter = adapters_.find(sequence.root_);
  const ExtraKeys extra = {
      .adapter = adapter == adapters_.end() ? std::string_view() : adapter->second,
      .salt = salt_enters ? salts_.text(sequence.salt_) : std::string_view()};
  const auto hash = hasher_.hash(hashes_[parent.value()], tree_.tokens(node), extra);
  ASSERT(hash.ok(), "block size, adapter and salt are within the hasher's limits");
  hashes_[node.value()] = hash.value();
}

Status hash_prompt(BlockHasher& hasher, std::string_view adapter, std::string_view salt,
                   std::uint64_t public_tokens, std::span<const TokenId> prompt,
                   std::uint32_t block_tokens, std::vector<BlockHash>& hashes) {
  hashes.clear();
  const std::uint64_t public_blocks = salt.empty() ? 0 : public_tokens / block_tokens;
  const std::uint64_t split = std::min<std::uint64_t>(public_blocks * block_tokens, prompt.size());
  RETURN_IF_ERROR(check_keys({.adapter = adapter, .salt = salt}));
  RETURN_IF_ERROR(hash_chain(hasher, root_hash(), prompt.first(split), block_tokens,
                             {.adapter = adapter, .salt = {}}, hashes));
  const BlockHash seed = hashes.empty() ? root_hash() : hashes.back();
  Status rest = hash_chain(hasher, seed, prompt.subspan(split), block_tokens,
                           {.adapter = adapter, .salt = salt}, hashes);
  if (!rest.ok()) hashes.clear();
  return rest;
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
  const NodeId parent = last_node(sequence);
  const SaltId region = region_of(sequence, block);
  const auto prompt_end = clear_way(parent, region, sequence.tail_);
  if (!prompt_end) return;
  const NodeId leaf = add_node(parent, region, sequence.tail_, *prompt_end);
  for (std::uint32_t group = 0; group < groups(); ++group) {
    adopt(leaf, group, sequence.tables_[group][block], sequence.request_);
  }
  note_prompt_end(sequence, leaf, block);
}

// May a child with these tokens be inserted? Nothing when one begins with them. A partial block
// that they begin with makes way: they serve whoever it would have served, also the one whose
// prompt ended in it, which is where the inserted one's does (0: no prompt ended there).
std::optional<std::uint32_t> Cache::clear_way(NodeId parent, SaltId region,
                                              std::span<const TokenId> tokens) {
  SearchWork work;
  const auto found = tree_.best_child(parent, region, tokens, work);
  if (!found) return 0;
  if (found->tokens_shared == tokens.size()) return std::nullopt;
  if (found->tokens_shared < tree_.tokens(found->node).size()) return 0;
  const std::uint32_t prompt_end = tree_.prompt_end(found->node);
  take_pages(found->node);
  return prompt_end;
}

void Cache::release_behind_windows(Sequence& sequence) {
  for (std::uint32_t group = 0; group < groups(); ++group) {
    const std::uint64_t first = memory::first_block_kept(
        options_.groups[group], sequence.tokens_computed(), options_.block_tokens);
    for (std::uint64_t& held = sequence.first_held_[group]; held < first; ++held) {
      release(sequence.tables_[group][held]);
    }
  }
}

}  // namespace pagoda::kv
