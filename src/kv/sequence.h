// A Sequence is a running request's hold on the cache: a lease on the blocks of its past and the
// blocks it fills. Move-only; its cache's close() ends it, and dropping it does the same. It must
// not outlive the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/evict/request_stats.h"
#include "kv/hash/block_hash.h"
#include "kv/ids.h"
#include "kv/lookup_scope.h"
#include "kv/page_selection.h"
#include "kv/session_table.h"

namespace pagoda::kv {

class BlockPool;
class Cache;

class Sequence {
 public:
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;
  ~Sequence();

  // Tokens whose rows are in the held blocks.
  std::uint64_t tokens_computed() const {
    return blocks_whole() * std::uint64_t{block_tokens_} + tail_.size();
  }
  // Blocks with such rows, the last one perhaps partial.
  std::uint64_t blocks_computed() const { return blocks_whole() + (tail_.empty() ? 0 : 1); }
  // With how many tokens of the block the prompt ends; nothing where it does not, or not yet.
  std::optional<std::uint32_t> prompt_end_in(std::uint64_t block) const {
    const std::uint64_t begin = block * block_tokens_;
    if (prompt_tokens_ <= begin || prompt_tokens_ > tokens_computed()) return std::nullopt;
    return static_cast<std::uint32_t>(prompt_tokens_ - begin);
  }
  // Tokens that the held blocks have room for.
  std::uint64_t tokens_reserved() const {
    return tables_.front().size() * std::uint64_t{block_tokens_};
  }
  // Pages of all groups that it holds.
  std::uint64_t blocks_held() const {
    std::uint64_t blocks = 0;
    for (std::size_t group = 0; group < tables_.size(); ++group) {
      blocks += tables_[group].size() - blocks_missing(group);
    }
    return blocks - (selection_ ? selection_->pages_dropped() : 0);
  }
  // Pages that no one else holds: closing the sequence adds at least these to the cache's
  // blocks_available(). `pool` is the cache's.
  std::uint64_t blocks_held_alone(const BlockPool& pool) const;
  // Takes the memory of this many tokens in all, so that reserving and committing them allocates
  // nothing here.
  void expect(std::uint64_t tokens);

  // The nodes of the whole blocks that were published, from the first; without sharing they are all
  // the root. A sequence that dropped blocks publishes no more.
  std::span<const NodeId> nodes() const { return nodes_; }
  // The node that the sequence stands on: of its last whole block, or the root.
  NodeId last_node() const { return nodes_.empty() ? scope_.root : nodes_.back(); }
  // Where the sequence looks and what it leaves.
  const LookupScope& lookup_scope() const { return scope_; }
  // Returns the branch of its session to which the blocks it makes belong.
  const BranchRef& branch() const { return branch_; }
  // Does the sequence hold a page there? Not where the block left the group's window, which sinks
  // never leave, or was dropped.
  bool holds(std::uint32_t group, std::uint64_t block) const {
    return block < tables_[group].size() &&
           (block >= first_held_[group] || block < sink_blocks(group)) &&
           !(selection_ && selection_->is_dropped(group, block));
  }
  // Returns what a KV policy that selects pages observed; nullptr: the sequence has no such policy.
  PageSelection* selection() { return selection_ ? &*selection_ : nullptr; }
  const PageSelection* selection() const { return selection_ ? &*selection_ : nullptr; }
  // Begins to observe attention, behind a prompt of so many tokens. Nothing of the sequence was
  // observed before.
  void select_pages(std::uint64_t prompt_tokens) {
    selection_.emplace(tables_.size(), block_tokens_, prompt_tokens);
  }

  // Drops the blocks that the policy lets go of now, behind a prompt of so many tokens, in every
  // group without a window of its own. Returns their pages, which the caller releases
  // (Cache::release), from the tail to the head. Rows that are computed from then on saw
  // less than the tokens before them, and are not published.
  std::vector<BlockId> drop_pages(const KvPolicy& policy, std::uint64_t prompt_tokens);
  bool has_dropped() const { return selection_ && selection_->has_dropped(); }

  // Entry b: the page of block b in the group. Entries that left the group's window, or were
  // dropped, are stale.
  std::span<const BlockId> table(std::uint32_t group) const { return tables_[group]; }

 private:
  friend class Cache;
  Sequence(Cache& cache, const LookupScope& scope, std::uint32_t block_tokens);

  std::uint64_t blocks_whole() const { return nodes_.size() + blocks_unpublished_; }
  std::uint64_t sink_blocks(std::uint32_t group) const {
    return scope_.groups[group].sink_blocks(block_tokens_);
  }
  // Blocks between sinks and window, which were released.
  std::uint64_t blocks_missing(std::size_t group) const {
    const std::uint64_t sinks = sink_blocks(static_cast<std::uint32_t>(group));
    return first_held_[group] - std::min(first_held_[group], sinks);
  }

  Cache* cache_;  // nullptr: closed
  LookupScope scope_;
  std::uint32_t tenant_ = 0;         // that room is made for (SaltTable::tenant_key)
  std::uint64_t prompt_tokens_ = 0;  // that it was opened with
  std::uint32_t block_tokens_;
  RequestStats request_;
  BranchRef branch_ = {};
  std::vector<BlockHash> hashes_;             // of the prompt's whole blocks, or empty
  std::vector<NodeId> nodes_;                 // of the whole blocks, from the first
  std::uint64_t blocks_unpublished_ = 0;      // whole blocks behind those
  std::vector<TokenId> tail_;                 // computed tokens of the block after them
  std::vector<std::vector<BlockId>> tables_;  // [group][block]
  std::vector<std::uint64_t> first_held_;     // [group]: of the window's; only sinks before it
  std::optional<PageSelection> selection_;
};

}  // namespace pagoda::kv
