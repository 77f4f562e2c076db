#include "kv/cache.h"

#include <algorithm>

#include "base/assert.h"

namespace pagoda::kv {

Cache::Cache(const CacheOptions& options)
    : options_(options),
      pool_(options.blocks),
      tree_({.block_tokens = options.block_tokens,
             .slices = static_cast<std::uint32_t>(options.slices.size()),
             .hash_seed = options.hash_seed}),
      created_(options.policy->reads_created ? options.blocks : 0, 0) {
  if (options.tier_slots > 0) tier_.emplace(options.tier_slots, slices());
  // A resident node has a page of every full slice; those without pages come on top.
  const auto full =
      std::count(options.slices.begin(), options.slices.end(), memory::LayerReach{.window = 0});
  const std::size_t nodes = options.blocks / std::max<std::size_t>(1, full) + 1;
  tree_.reserve(nodes);
  queue_.reserve(options.blocks);
  if (options.name_blocks) names_.reserve(nodes);
}

Domain Cache::domain(std::string_view space, std::string_view salt, std::string_view adapter) {
  ASSERT(salt.size() <= kSaltBytesMax && adapter.size() <= kAdapterBytesMax,
         "short enough to be named");
  const auto [root, is_new] =
      spaces_.try_emplace({std::string(space), std::string(adapter)}, NodeId());
  if (is_new) {
    root->second = tree_.add_root();
    if (options_.name_blocks) {
      names_.resize(std::max<std::size_t>(names_.size(), root->second.value() + 1));
      names_[root->second.value()] = root_name();
    }
    if (!adapter.empty()) adapters_.emplace(root->second, adapter);
  }
  if (salt.empty()) return {.root = root->second};
  auto id = salts_.find(salt);
  if (id == salts_.end()) {
    id = salts_.emplace(salt, SaltId(static_cast<std::uint32_t>(salt_texts_.size()))).first;
    salt_texts_.emplace_back(salt);
    charged_.push_back(0);
  }
  return {.root = root->second, .salt = id->second};
}

std::variant<Opened, OutOfBlocks> Cache::open(const Domain& domain, const Match& match,
                                              std::span<const TokenId> prompt,
                                              std::span<const BlockName> names) {
  Sequence sequence(*this, domain.root, domain.salt, slices(), options_.block_tokens);
  sequence.public_tokens_ = domain.public_tokens;
  sequence.names_.assign(names.begin(), names.end());
  sequence.nodes_ = match.nodes;
  tree_.pin(last_node(sequence));
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    std::vector<BlockId>& table = sequence.tables_[slice];
    sequence.first_held_[slice] =
        memory::first_block_kept(options_.slices[slice], match.tokens, options_.block_tokens);
    for (std::uint64_t block = 0; block < match.nodes.size(); ++block) {
      const bool held = block >= sequence.first_held_[slice];
      table.push_back(held ? tree_.page(match.nodes[block], slice).value() : BlockId(0));
      if (held) hold(table.back());
    }
  }
  std::vector<Copy> copies;
  if (match.partial) {
    // The sources are held before room is made, so that they are not what goes.
    for (std::uint32_t slice = 0; slice < slices(); ++slice) {
      const BlockId from = tree_.page(*match.partial, slice).value();
      hold(from);
      copies.push_back({from, BlockId(0), match.partial_tokens});
    }
    const OutOfBlocks shortage = {slices(), blocks_available()};
    if (!make_room(slices())) {
      for (const Copy& copy : copies) release(copy.from);
      return shortage;
    }
    for (std::uint32_t slice = 0; slice < slices(); ++slice) {
      copies[slice].to = take_block();
      sequence.tables_[slice].push_back(copies[slice].to);
    }
    const auto tail =
        prompt.subspan(match.nodes.size() * options_.block_tokens, match.partial_tokens);
    sequence.tail_.assign(tail.begin(), tail.end());
  }
  return Opened{std::move(sequence), std::move(copies)};
}

std::variant<std::vector<Copy>, OutOfBlocks> Cache::reserve(Sequence& sequence,
                                                            std::uint64_t tokens) {
  const std::uint64_t blocks_now = sequence.tables_.front().size();
  const std::uint64_t blocks_then =
      std::max(blocks_now, (tokens + options_.block_tokens - 1) / options_.block_tokens);
  const std::uint64_t tail_block = sequence.nodes_.size();
  const bool shared =
      !sequence.tail_.empty() && pool_.references(sequence.tables_.front()[tail_block]) > 1;
  const std::uint64_t needed = (blocks_then - blocks_now + (shared ? 1 : 0)) * slices();
  const OutOfBlocks shortage = {needed, blocks_available()};
  if (!make_room(needed)) return shortage;

  std::vector<Copy> copies;
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    std::vector<BlockId>& table = sequence.tables_[slice];
    if (shared) {  // the sequence's hold on the old block becomes the copy's
      const BlockId own = take_block();
      copies.push_back({table[tail_block], own, static_cast<std::uint32_t>(sequence.tail_.size())});
      table[tail_block] = own;
    }
    while (table.size() < blocks_then) table.push_back(take_block());
  }
  return copies;
}

Sequence Cache::fork(const Sequence& sequence) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  Sequence twin(*this, sequence.root_, sequence.salt_, slices(), options_.block_tokens);
  twin.public_tokens_ = sequence.public_tokens_;
  twin.names_ = sequence.names_;
  twin.nodes_ = sequence.nodes_;
  tree_.pin(last_node(twin));
  twin.tail_ = sequence.tail_;
  twin.first_held_ = sequence.first_held_;
  const std::uint64_t blocks = sequence.nodes_.size() + (sequence.tail_.empty() ? 0 : 1);
  for (std::uint32_t slice = 0; slice < slices(); ++slice) {
    const auto table = sequence.table(slice).first(blocks);
    twin.tables_[slice].assign(table.begin(), table.end());
    for (std::uint64_t b = twin.first_held_[slice]; b < blocks; ++b) pool_.share(table[b]);
  }
  return twin;
}

void Cache::close(Sequence& sequence) {
  ASSERT(sequence.cache_ == this, "the sequence is open here");
  // From the tail to the head, so that the head was used last and the tail leaves first.
  for (std::uint64_t block = sequence.tables_.front().size(); block-- > 0;) {
    for (std::uint32_t slice = 0; slice < slices(); ++slice) {
      if (block >= sequence.first_held_[slice]) release(sequence.tables_[slice][block]);
    }
  }
  tree_.unpin(last_node(sequence));
  settle(last_node(sequence));
  sequence.cache_ = nullptr;
}

void Cache::copied(const Copy& copy) { release(copy.from); }

void Cache::hold(BlockId block) {
  if (pool_.state(block) == BlockState::kIdle) {
    pool_.wake(block);
  } else {
    pool_.share(block);
  }
}

void Cache::release(BlockId block) { release(block, ++now_); }

// `used`: when the block was last used, if this was the last holder.
void Cache::release(BlockId block, Tick used) {
  if (pool_.references(block) > 1) return pool_.unshare(block);
  const std::optional<NodeId> node = pool_.owner(block);
  const bool filling = pool_.state(block) == BlockState::kFilling;
  if (filling && !node) return pool_.drop(block);
  if (filling) {
    pool_.leave_open(block, used);
  } else {
    pool_.rest(block, used);
  }
  if (!node) return pool_.evict(block);  // its node made way while a copy was reading it
  queue_node(*node);                     // its other pages may have waited for this one
}

BlockId Cache::take_block() {
  const std::optional<BlockId> block = pool_.fill();
  ASSERT(block.has_value(), "room was made before");
  note_created(*block);
  return *block;
}

}  // namespace pagoda::kv
