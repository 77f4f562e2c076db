// The cache: blocks, the tokens they hold, who holds them, and which go first.
//
// A request's life here:
//
//   Match    match(scope, prompt)       how much is there? A pure question.
//   Opened   open(scope, match)         shares whole blocks; at most one copy when the match ends
//                                       inside a block
//   reserve(sequence, tokens)           room for what is computed next; may evict; may ask for a
//                                       copy of a block that a fork shares
//   commit(sequence, tokens)            these tokens' rows are written now: whole blocks are sealed
//                                       and shared, the rest becomes a partial block
//   close(sequence)                     its blocks stay, reusable until evicted
//
// Bytes are not touched here: copies are instructions for whoever owns the memory. Running out of
// blocks is a value. Thread rule: one thread owns a Cache; it has no locks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "kv/blocks/block_pool.h"
#include "kv/cache_scope.h"
#include "kv/cache_snapshot.h"
#include "kv/curve.h"
#include "kv/curve/live_curve.h"
#include "kv/events/event_ring.h"
#include "kv/evict/eviction_queue.h"
#include "kv/evict/linked_heaps.h"
#include "kv/evict/order_queues.h"
#include "kv/evict/policy.h"
#include "kv/explain/eviction_log.h"
#include "kv/explanation.h"
#include "kv/hash/block_hash.h"
#include "kv/ids.h"
#include "kv/memory/cache_groups.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/quota_queues.h"
#include "kv/retention.h"
#include "kv/retention_table.h"
#include "kv/salt_table.h"
#include "kv/sequence.h"

namespace pagoda::kv {

struct CacheOptions {
  std::uint32_t blocks = 0;  // pages of all groups together
  std::uint32_t block_tokens = 16;
  std::vector<memory::AttentionSpec> groups = {{}};
  const EvictionPolicy* policy = &lru_policy();
  std::uint64_t hash_seed = 0;
  // What a block counts for where a policy weighs positions; 0: block_tokens. For replays, whose
  // blocks of one token stand for more.
  std::uint32_t block_tokens_weighed = 0;
  // A region with more blocks than its quota loses blocks first. 0: no quota.
  std::uint64_t quota_blocks_private = 0;  // of each account
  std::uint64_t quota_blocks_public = 0;
  // What requests of one salt may have retained; 0: nothing. All together: half the pool.
  std::uint64_t retain_blocks_max = 0;
  // The last so many evictions are remembered, for explain(); 0: none.
  std::uint32_t eviction_records_max = 0;
  bool hash_blocks = false;  // hash every whole block (hash/block_hash.h)
  bool live_curve = false;   // say what other sizes and policies would have given (curve.h)
  // Where changes are told; outlives the cache. Blocks are hashed then. nullptr: nobody asks.
  EventRing* events = nullptr;
  // False: nothing is found or published, and blocks are free once nobody holds them. Forks share.
  bool share = true;
  // Called before a duplicate is given up, while both blocks are held: dev builds compare their
  // bytes, which must be equal.
  std::function<void(BlockId mine, BlockId existing)> on_deduplicate = {};
};

// How much of a prompt the cache holds. Valid until the cache changes.
struct Match {
  std::uint64_t tokens = 0;       // at most prompt - 1
  std::vector<NodeId> nodes;      // whole blocks that are shared
  std::optional<NodeId> partial;  // the node whose first rows are copied
  std::uint32_t partial_tokens = 0;
  SearchWork work;
};

// Copy the first `tokens` rows of every layer of a page. The source stays as it is until the copy
// is reported done by copied().
struct Copy {
  BlockId from;
  BlockId to;
  std::uint32_t tokens = 0;
};

// The hashes that the whole blocks of a prompt get in a scope: for the thread that submits it.
// They replace what `hashes` held; after an error it is empty.
Status hash_prompt(BlockHasher& hasher, std::string_view adapter, std::string_view salt,
                   std::uint64_t public_tokens, std::span<const TokenId> prompt,
                   std::uint32_t block_tokens, std::vector<BlockHash>& hashes);

// How far a snapshot has come.
struct SnapshotCursor {
  std::uint32_t next = 0;  // node number
  bool ended = false;
};

// Nothing was done and nothing was evicted: blocks_needed is more than blocks_available.
struct OutOfBlocks {
  std::uint64_t blocks_needed;
  std::uint64_t blocks_available;
};

struct Opened {
  Sequence sequence;
  std::vector<Copy> copies;  // one per group when the match ends inside a block, else none
};

class Cache {
 public:
  explicit Cache(const CacheOptions& options);

  // The region of `salt` (empty: public) in a namespace; both are made when new. `space` stands for
  // all that rows depend on besides tokens: model fingerprint, numerics id, KV format; `adapter` is
  // part of it, and of block hashes. Blocks of one namespace are never read under another. An
  // error when the salt has more than kSaltBytesMax bytes or the adapter more than
  // kAdapterBytesMax. Namespaces are remembered for the life of the cache; a salt while something
  // refers to it. The owner, of those who name the salt the first, is told of all its
  // salts by explain() and may clear them.
  Result<CacheScope> scope(std::string_view space, std::string_view salt,
                           std::string_view adapter = {}, OwnerId owner = kNoOwner);

  Match match(const CacheScope& scope, std::span<const TokenId> prompt) const;
  // The longest match that ends with a block: for who brings or computes whole blocks behind it.
  Match match_blocks(const CacheScope& scope, std::span<const TokenId> prompt) const;
  // Why the match is not longer (README: X1 to X6). Depends on nothing that is private to others,
  // but that they may have needed room. Costs a few searches.
  Explanation explain(const CacheScope& scope, std::span<const TokenId> prompt,
                      const Match& match) const;
  Explanation explain(const CacheScope& scope, std::span<const TokenId> prompt) const {
    return explain(scope, prompt, match(scope, prompt));
  }
  // `hashes` are those of the prompt's whole blocks, where the caller computed them (hash_prompt).
  std::variant<Opened, OutOfBlocks> open(const CacheScope& scope, const Match& match,
                                         std::span<const TokenId> prompt,
                                         std::span<const BlockHash> hashes = {});

  // How many of blocks_available() it takes to open the match and to reserve room for `tokens`
  // tokens in all: blocks that are taken, and idle ones that are held. Less is refused, no more is
  // used.
  std::uint64_t blocks_needed(const Match& match, std::uint64_t tokens) const;
  // ... and to reserve room in a sequence that is open.
  std::uint64_t blocks_needed(const Sequence& sequence, std::uint64_t tokens) const;

  // Room for `tokens` tokens in all, in blocks this sequence alone may write.
  std::variant<std::vector<Copy>, OutOfBlocks> reserve(Sequence& sequence, std::uint64_t tokens);
  // The same for rows that are there already and only have to be brought, in a sequence that stands
  // between two blocks: window groups get no blocks that a query behind those tokens does not see,
  // and what is committed has no pages there. False: too few blocks, and nothing was done.
  bool reserve_visible(Sequence& sequence, std::uint64_t tokens);
  // How many blocks that takes, of who has the first `blocks_matched` blocks already.
  std::uint64_t blocks_to_load(std::uint64_t blocks_matched, std::uint64_t tokens) const;
  // `duplicates`, where given, gets the blocks that deduplication leaves over instead of the
  // pool: for those who still have them in use. release_duplicate() releases each.
  void commit(Sequence& sequence, std::span<const TokenId> tokens,
              std::vector<BlockId>* duplicates = nullptr);
  void release_duplicate(BlockId block) { release(block); }
  // Like commit() of one whole block in whose own pages nothing was written: the sequence goes on
  // with the pages of the block that committing it would deduplicate to. False, and nothing
  // happens, where that is not there with a page in every group in which the sequence has one.
  bool commit_existing(Sequence& sequence, std::span<const TokenId> tokens);
  // The twin shares all blocks, also the last one: whoever writes to that reserves again first. The
  // caller's hashes are not the fork's, which may go on with other tokens than the prompt's.
  Sequence fork(const Sequence& sequence);
  void close(Sequence& sequence);
  // Ends the pin that a copy holds on its source.
  void copied(const Copy& copy);

  // Pins the whole block with this hash, for a store that copies it out, until
  // unpin_page(): being copied out is not a use. Nothing when the node is not live or not whole,
  // was retired, or has another hash or no page in the group.
  std::optional<BlockId> pin_page(NodeId node, const BlockHash& hash, std::uint32_t group);
  void unpin_page(BlockId block);
  // Whole blocks that would be evicted next, soonest first, at most so many; of a chain the last,
  // before which none can go. What the policy gives another chance comes after the others. They are
  // looked at and stay where they are; it looks at two blocks of every group for each that is asked
  // for, so that many partial blocks among them leave fewer.
  std::vector<NodeId> eviction_candidates(std::size_t nodes_max);
  // Whole blocks that have pages, most recently used first: what a stopping server keeps first.
  // Linear.
  std::vector<NodeId> whole_blocks() const;

  // The beginning of a sequence is kept: it leaves after everything that is not retained, by
  // priority, until the time is over or its blocks are all that is left to make room with. Nothing
  // is retained in part; an error says why nothing was.
  Result<Retained> retain(const Sequence& sequence, const RetainTerms& terms);
  // What time it is; it does not run backwards. What was retained until then is let go, a few
  // blocks at a call.
  void advance_time(std::int64_t now_ns);
  std::int64_t time_ns() const { return time_ns_; }

  // Evicts every idle block.
  void clear();
  // The same for the private regions of one owner: nobody else's blocks are touched.
  void clear(OwnerId owner);
  // Nothing that is private to the owner now is found by who comes later: idle blocks are evicted,
  // those that are held go as soon as nobody holds them, with what their holders add to them. They
  // are not copied out any more (pin_page). Returns how many were evicted.
  std::uint64_t retire(OwnerId owner);
  // Of those that were retired: blocks that somebody holds.
  std::uint64_t blocks_retired(OwnerId owner) const { return salts_.blocks_retired(owner); }

  // A part of a snapshot goes to the events: what the next nodes have, at most `nodes_max` of them
  // and no more than the ring has room for. The cache may change between parts; the snapshot is as
  // of its kSnapshotEnd.
  void emit_snapshot(SnapshotCursor& cursor, std::uint32_t nodes_max);

  const BlockPool& pool() const { return pool_; }
  const PrefixTree& tree() const { return tree_; }
  // Free, or idle and free to go: what a request can get.
  std::uint64_t blocks_available() const {
    return std::uint64_t{pool_.blocks_free()} + pool_.blocks_idle() - blocks_guarded_;
  }
  // What closing the sequence would add to them, at least.
  std::uint64_t blocks_held_alone(const Sequence& sequence) const;
  std::span<const memory::AttentionSpec> group_specs() const { return options_.groups; }
  std::uint32_t block_tokens() const { return options_.block_tokens; }
  std::uint64_t blocks_deduplicated() const { return blocks_deduplicated_; }
  // All that left; those without a cause were partial blocks that made way for a longer block.
  std::uint64_t blocks_evicted() const { return blocks_evicted_; }
  const EvictionCounts& blocks_evicted_by_cause() const { return blocks_evicted_by_cause_; }

  bool shares() const { return options_.share; }
  bool hashes_blocks() const { return options_.hash_blocks; }
  // The block hash of a whole block, when the cache hashes blocks.
  const BlockHash& block_hash(NodeId node) const { return hashes_[node.value()]; }
  // Blocks that nodes of a region have.
  std::uint64_t blocks_charged(SaltId region) const { return salts_.blocks_charged(region); }
  const SaltTable& salts() const { return salts_; }
  std::uint64_t blocks_retained() const { return retentions_ ? retentions_->blocks_in_all() : 0; }
  std::uint64_t retain_blocks_max() const { return options_.retain_blocks_max; }
  // Changes with what is retained.
  std::uint64_t retained_version() const { return retentions_ ? retentions_->version() : 0; }
  // What is retained, soonest to end first: at most RetentionTable::kGrantsMax.
  std::vector<GrantStats> retained() const;

  CacheSnapshot snapshot(std::size_t nodes_max) const;
  // What other sizes and policies would have given; empty without live_curve or without sharing.
  CurveStats curve() const;
  // That the curve has counted: it changes with this.
  std::uint64_t blocks_asked() const { return curve_ ? curve_->blocks_asked() : 0; }
  // Stops the program when an invariant (README: B, T, C) does not hold. Linear.
  void check() const;

 private:
  friend class CacheScope;

  // What keeps idle pages of a node from being evicted (README: E6).
  struct Guard {
    std::uint32_t children = 0;  // that are guarded
    std::uint16_t blocks = 0;    // of the node that are idle and stay
    bool is_guarded = false;
    bool was_retained = false;  // until its time was over
  };

  // Where a search looks: a CacheScope without its lease.
  struct LookupScope {
    NodeId root;
    SaltId salt;
    std::uint64_t public_tokens = 0;

    bool is_public(std::uint64_t tokens) const {
      return salt == kPublic || tokens <= public_tokens;
    }
  };
  // Why blocks go: for a request of the account, or because all do.
  struct EvictionTrigger {
    std::uint32_t account = 0;
    bool is_reset = false;
  };
  // How far the tree knows a prompt, with pages or without.
  struct PrefixPath {
    NodeId end;                 // of the last whole block, or the root
    std::vector<NodeId> nodes;  // the last one may be shared in part
    std::uint64_t tokens = 0;
  };
  // How far it would, had nothing left.
  struct EvictedMatch {
    std::uint64_t tokens = 0;
    std::optional<EvictionRecord> first;
  };

  std::uint32_t groups() const { return tree_.groups(); }
  std::uint32_t block_tokens_weighed() const {
    const std::uint32_t weighed = options_.block_tokens_weighed;
    return weighed > 0 ? weighed : options_.block_tokens;
  }

  // Holding (cache.cc)
  BlockId take_block();
  void hold(BlockId block);
  void release(BlockId block);
  void release(BlockId block, Tick used);
  bool is_tail_shared(const Sequence& sequence) const;
  bool is_available(NodeId node, std::uint32_t group) const;
  NodeId new_root(std::string_view adapter);
  NodeId add_node(NodeId parent, SaltId region, std::span<const TokenId> tokens,
                  std::uint32_t prompt_end);
  void erase_node(NodeId node);
  void fit_tables(NodeId node);

  // Finding (cache_lookup.cc)
  Match match_as(const LookupScope& lookup, std::span<const TokenId> prompt,
                 bool whole_blocks_only = false) const;
  std::optional<PrefixTree::Found> child_to_follow(const LookupScope& lookup, NodeId parent,
                                                   std::span<const TokenId> tokens,
                                                   bool block_is_public, SearchWork& work) const;

  // Explaining (cache_explain.cc)
  std::uint32_t account_of(SaltId salt, OwnerId owner) const;
  bool keeps_identities() const { return ordered_ || eviction_log_ || curve_; }
  std::uint64_t identity_of(NodeId node) const;
  std::uint64_t identity_below(NodeId parent, SaltId region, std::span<const TokenId> tokens) const;
  void note_used(BlockId block);
  void note_prompt_end(const Sequence& sequence, NodeId node, std::uint64_t block);
  void log_eviction(NodeId node, BlockId block, const EvictionTrigger& trigger);
  PrefixPath follow(const LookupScope& lookup, std::span<const TokenId> prompt) const;
  EvictedMatch evicted_match(const LookupScope& lookup, const PrefixPath& path,
                             std::span<const TokenId> prompt) const;
  std::optional<EvictionRecord> last_eviction(const PrefixPath& path) const;
  void search_other_scopes(const CacheScope& scope, std::span<const TokenId> prompt,
                           Explanation& why) const;
  std::vector<TokenId> stored_after(const LookupScope& lookup, const PrefixPath& path,
                                    std::span<const TokenId> prompt) const;

  // Publishing (cache_publish.cc)
  SaltId region_of(const Sequence& sequence, std::uint64_t block) const;
  NodeId last_node(const Sequence& sequence) const;
  std::optional<NodeId> partial_block(const Sequence& sequence) const;
  void seal_tail(Sequence& sequence, std::vector<BlockId>* duplicates);
  void seal_alone(Sequence& sequence);
  void deduplicate(Sequence& sequence, NodeId node, std::uint64_t block,
                   std::vector<BlockId>* duplicates);
  void stand_on(Sequence& sequence, NodeId node);
  void adopt(NodeId node, std::uint32_t group, BlockId block, const RequestStats& request);
  void note_whole(const Sequence& sequence, NodeId node);
  void set_hash(const Sequence& sequence, NodeId node);
  void publish_tail(Sequence& sequence);
  std::optional<std::uint32_t> clear_way(NodeId parent, SaltId region,
                                         std::span<const TokenId> tokens);
  void release_behind_windows(Sequence& sequence);

  // Evicting (cache_eviction.cc)
  void make_room(std::uint64_t blocks, std::uint32_t account);
  std::optional<BlockId> next_victim(bool may_spare = true);
  std::optional<BlockId> next_by_policy(bool may_spare);
  EvictionCause cause_of(NodeId node, const EvictionTrigger& trigger) const;
  bool evict_one(const EvictionTrigger& trigger);
  void evict(BlockId block, const EvictionTrigger& trigger);
  bool is_owned(NodeId node, OwnerId owner) const;
  void drop_retired(NodeId node);
  void take_page(NodeId node, std::uint32_t group);
  std::uint32_t group_of(NodeId node, BlockId block) const;
  EvictionQueue::Verdict judge(BlockId block) const;
  EvictionQueue::Verdict judge_unretained(BlockId block) const;
  std::int64_t score(BlockId block) const;
  BlockStats stats(BlockId block) const;
  void note_created(BlockId block);
  void note_sealed(NodeId node, std::uint32_t group);
  void note_ended(const Sequence& sequence);
  void note_use(BlockId block, const RequestStats& request);
  Use use_of(NodeId node, const RequestStats& request) const;
  void identify(NodeId node);
  void queue_if_evictable(BlockId block);
  void queue_node(NodeId node);
  void take_pages(NodeId node);
  void settle(NodeId node);
  void update_guard(NodeId node);
  void check_guards() const;
  void check_queued(BlockId block) const;

  // Retaining (cache_retention.cc)
  bool is_retained(NodeId node) const { return retentions_ && retentions_->contains(node); }
  std::int64_t retained_key(BlockId block) const;
  std::optional<BlockId> next_retained();
  void leave_heap(NodeId node, BlockId block);
  void release_retained(NodeId node);
  AccountId charged_account(NodeId node) const { return salts_.account(tree_.region(node)); }
  void note_charge(SaltId region);

  // The live curve (cache_curve.cc)
  void note_asked(const Sequence& sequence, std::span<const TokenId> prompt);
  void note_closed(const Sequence& sequence);
  // Telling (cache_events.cc)
  void emit_event(CacheEventKind kind, NodeId node, std::uint32_t group);
  void emit_page_events(CacheEventKind kind, NodeId node);
  void emit_cleared();

  NodeSnapshot snapshot_of(NodeId node) const;

  CacheOptions options_;
  EventRing* events_;  // nullptr: nobody is told
  BlockPool pool_;
  PrefixTree tree_;
  EvictionQueue queue_;                    // when the policy is a score
  std::optional<OrderQueues> ordered_;     // when it is an order
  std::vector<std::uint64_t> identities_;  // [node], of whole ones, if keeps_identities()
  std::optional<EvictionLog> eviction_log_;
  std::vector<std::uint32_t> used_;  // [block]: when it was last held, for eviction_log_
  bool victim_by_quota_ = false;     // the last one
  std::optional<LiveCurve> curve_;
  std::vector<std::uint64_t> asked_;  // of the prompt that is opened, for curve_
  std::vector<Tick> created_;         // [block], or empty: the policy does not read it
  std::vector<std::uint32_t> pins_;   // [block]: of its references, those of who copies it
  std::vector<Guard> guards_;         // [node]
  std::uint64_t blocks_guarded_ = 0;
  std::map<std::pair<std::string, std::string>, NodeId> spaces_;  // (space, adapter)
  std::map<NodeId, std::string> adapters_;                        // of roots that have one
  SaltTable salts_;
  std::optional<LinkedHeaps> heaps_;  // of blocks: by region for quotas_, or retained
  std::optional<QuotaQueues> quotas_;
  std::optional<RetentionTable> retentions_;
  LinkedHeaps::Item first_retained_ = LinkedHeaps::kNone;  // to leave, of those that may
  BlockHasher hasher_;
  std::vector<BlockHash> hashes_;  // [node]
  Tick now_ = 0;
  std::int64_t time_ns_ = 0;
  std::uint64_t blocks_deduplicated_ = 0;
  std::uint64_t blocks_evicted_ = 0;
  EvictionCounts blocks_evicted_by_cause_{};
};

}  // namespace pagoda::kv
