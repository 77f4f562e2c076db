// What a sequence has computed becomes findable: whole blocks are sealed, the rest is an open leaf.
#include <algorithm>

#include "base/assert.h"
#include "kv/cache.h"

namespace pagoda::kv {

void Cache::commit(Sequence& sequence, std::span<const TokenId> tokens,
                   std::vector<BlockId>* given_up) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  ASSERT(sequence.tokens_computed() + tokens.size() <= sequence.tokens_reserved(),
         "room is reserved before rows are written");
  while (!tokens.empty()) {
    const std::size_t room = options_.block_tokens - sequence.tail_.size();
    const auto part = tokens.first(std::min(room, tokens.size()));
    sequence.tail_.insert(sequence.tail_.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
    if (sequence.tail_.size() == options_.block_tokens) seal_tail(sequence, given_up);
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
std::optional<NodeId> Cache::open_leaf(const Sequence& sequence) const {
  if (!sequence.holds(0, sequence.nodes_.size())) return std::nullopt;  // it is being brought
  const BlockId block = sequence.tables_.front()[sequence.nodes_.size()];
  return pool_.state(block) == BlockState::kFilling ? pool_.owner(block) : std::nullopt;
}

void Cache::seal_tail(Sequence& sequence, std::vector<BlockId>* given_up) {
  if (!options_.share) return seal_alone(sequence);
  const std::uint64_t block = sequence.nodes_.size();
  const NodeId parent = last_node(sequence);
  const SaltId region = region_of(sequence, block);
  std::optional<NodeId> node = open_leaf(sequence);
  if (node) {
    tree_.extend(*node, std::span(sequence.tail_).subspan(tree_.tokens(*node).size()));
    for (std::uint32_t slice = 0; slice < slices(); ++slice) {
      pool_.seal(sequence.tables_[slice][block]);
    }
    note_whole(sequence, *node);
  } else if (const auto prompt_end = clear_way(parent, region, sequence.tail_)) {
    node = add_node(parent, region, sequence.tail_, *prompt_end);
    for (std::uint32_t slice = 0; slice < slices(); ++slice) {
      if (!sequence.holds(slice, block)) continue;
      adopt(*node, slice, sequence.tables_[slice][block], sequence.request_);
      pool_.seal(sequence.tables_[slice][block]);
    }
    note_whole(sequence, *node);
  } else {
    SearchWork work;
    node = tree_.best_child(parent, region, sequence.tail_, work)->node;
    join(sequence, *node, block, given_up);
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

bool Cache::join_existing(Sequence& sequence, std::span<const TokenId> tokens) {
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
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    if (sequence.holds(slice, block) && !tree_.page(found->node, slice)) return false;
  }
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    if (!sequence.holds(slice, block)) continue;
    BlockId& mine = sequence.tables_[slice][block];
    const BlockId existing = tree_.page(found->node, slice).value();
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
  give_name(sequence, node);
  identify(node);
  announce_pages(EventKind::kStored, node);
}

// Without sharing no node stands for the block: it is free when its last holder lets go, and the
// sequence stands on its root.
void Cache::seal_alone(Sequence& sequence) {
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    pool_.seal(sequence.tables_[slice][sequence.nodes_.size()]);
  }
  sequence.nodes_.push_back(sequence.root_);
  sequence.tail_.clear();
}

// The block exists already: the sequence goes on with the existing pages and gives up its own;
// where a slice's page is missing, its own takes that place.
void Cache::join(Sequence& sequence, NodeId node, std::uint64_t block,
                 std::vector<BlockId>* given_up) {
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    if (!sequence.holds(slice, block)) continue;
    BlockId& mine = sequence.tables_[slice][block];
    const std::optional<BlockId> existing = tree_.page(node, slice);
    if (!existing) {
      adopt(node, slice, mine, sequence.request_);
      pool_.seal(mine);
      note_sealed(node, slice);
      announce(EventKind::kStored, node, slice);
      continue;
    }
    hold(*existing);
    note_use(*existing, sequence.request_);
    if (options_.on_join) options_.on_join(mine, *existing);
    if (given_up != nullptr) {
      given_up->push_back(mine);
    } else {
      release(mine);
    }
    mine = *existing;
    ++blocks_joined_;
  }
}

void Cache::adopt(NodeId node, std::uint32_t slice, BlockId block, const RequestStats& request) {
  tree_.set_page(node, slice, block);
  pool_.set_owner(block, node);
  if (ordered_) ordered_->order().entered(block, use_of(node, request));
  salts_.charge(tree_.region(node));
  note_charge(tree_.region(node));
  update_guard(node);
}

// A freshly whole block is named: as the asker computed it, or here when the chain above it is not
// the one the asker had in mind.
void Cache::give_name(const Sequence& sequence, NodeId node) {
  if (!options_.name_blocks) return;
  const NodeId parent = tree_.parent(node);
  const bool salt_enters = tree_.region(node) != tree_.region(parent);
  const std::uint64_t block = sequence.nodes_.size();
  const std::uint64_t salt_block = sequence.public_tokens_ / options_.block_tokens;
  const bool as_computed = block < sequence.names_.size() &&
                           (block == 0 || names_[parent.value()] == sequence.names_[block - 1]) &&
                           (sequence.salt_ == kPublic || salt_enters == (block == salt_block));
  if (as_computed) {
    names_[node.value()] = sequence.names_[block];
    return;
  }
  const auto adapter = adapters_.find(sequence.root_);
  const ExtraKeys extra = {
      .adapter = adapter == adapters_.end() ? std::string_view() : adapter->second,
      .salt = salt_enters ? salts_.text(sequence.salt_) : std::string_view()};
  const auto name = namer_.name(names_[parent.value()], tree_.tokens(node), extra);
  ASSERT(name.ok(), "block size, adapter and salt are within the namer's limits");
  names_[node.value()] = name.value();
}

Status name_prompt(BlockNamer& namer, std::string_view adapter, std::string_view salt,
                   std::uint64_t public_tokens, std::span<const TokenId> prompt,
                   std::uint32_t block_tokens, std::vector<BlockName>& names) {
  names.clear();
  const std::uint64_t public_blocks = salt.empty() ? 0 : public_tokens / block_tokens;
  const std::uint64_t split = std::min<std::uint64_t>(public_blocks * block_tokens, prompt.size());
  RETURN_IF_ERROR(check_keys({.adapter = adapter, .salt = salt}));
  RETURN_IF_ERROR(name_chain(namer, root_name(), prompt.first(split), block_tokens,
                             {.adapter = adapter, .salt = {}}, names));
  const BlockName seed = names.empty() ? root_name() : names.back();
  Status rest = name_chain(namer, seed, prompt.subspan(split), block_tokens,
                           {.adapter = adapter, .salt = salt}, names);
  if (!rest.ok()) names.clear();
  return rest;
}

void Cache::publish_tail(Sequence& sequence) {
  const std::uint64_t block = sequence.nodes_.size();
  if (const std::optional<NodeId> leaf = open_leaf(sequence)) {
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
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    adopt(leaf, slice, sequence.tables_[slice][block], sequence.request_);
  }
  note_prompt_end(sequence, leaf, block);
}

// May a child with these tokens be inserted? Nothing when one begins with them. An open leaf that
// they begin with makes way: they serve whoever it would have served, also the one whose prompt
// ended in it, which is where the inserted one's does (0: no prompt ended there).
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
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    const std::uint64_t first = memory::first_block_kept(
        options_.slices[slice], sequence.tokens_computed(), options_.block_tokens);
    for (std::uint64_t& held = sequence.first_held_[slice]; held < first; ++held) {
      release(sequence.tables_[slice][held]);
    }
  }
}

}  // namespace pagoda::kv
