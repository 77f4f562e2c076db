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
// The cache is composed of parts (kv/cache_parts.h), each with its own state and check(). It
// carries out what a request asks for and tells the parts what happened.
//
// Bytes are not touched here: copies are instructions for whoever owns the memory. Running out of
// blocks is a value. Thread rule: one thread owns a Cache; it has no locks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "kv/cache_parts.h"
#include "kv/cache_scope.h"
#include "kv/cache_values.h"
#include "kv/ids.h"
#include "kv/retention.h"
#include "kv/sequence.h"

namespace pagoda::kv {

class Cache : public CacheParts {
 public:
  explicit Cache(const CacheOptions& options) : CacheParts(options) {}

  // The region of `salt` (empty: public) in a namespace; both are made when new. `space` stands for
  // all that rows depend on besides tokens: model fingerprint, numerics id, KV format; `adapter`
  // and `policy` are part of it, and of block hashes. Blocks of one namespace are never read under
  // another. An error when the salt has more than kSaltBytesMax bytes or the adapter more than
  // kAdapterBytesMax. Namespaces are
  // remembered for the life of the cache; a salt while something refers to it. A salt belongs to
  // the owner who names it first: explain() tells the owner of all its salts, and clear() and
  // retire() work on them.
  Result<CacheScope> scope(std::string_view space, std::string_view salt,
                           std::string_view adapter = {}, OwnerId owner = kNoOwner,
                           const KvPolicy& policy = {});

  // The longest match of the prompt in the scope.
  Match match(const CacheScope& scope, std::span<const TokenId> prompt,
              MatchEnd end = MatchEnd::kAnywhere) const {
    return lookup_.match(scope.lookup(), prompt, end);
  }
  // Why the match is not longer (README: X1 to X6). The explanation depends on nothing that is
  // private to others, but that they may have needed room. It costs a few searches.
  Explanation explain(const CacheScope& scope, std::span<const TokenId> prompt,
                      const Match& match) const {
    return explainer_.explain(scope, prompt, match);
  }

  // How many of blocks_available() it takes to open the scope's match and to reserve room for
  // `tokens` tokens in all: blocks that are taken, and idle ones that are held. Less is refused, no
  // more is used.
  std::uint64_t blocks_needed(const CacheScope& scope, const Match& match,
                              std::uint64_t tokens) const;
  // ... and to reserve room in a sequence that is open.
  std::uint64_t blocks_needed(const Sequence& sequence, std::uint64_t tokens) const;
  // Blocks that are free, or idle and free to go: so many a request can get.
  std::uint64_t blocks_available() const { return evictor_.blocks_available(); }

  // `hashes` are those of the prompt's whole blocks, where the caller computed them (hash_prompt).
  std::variant<Opened, OutOfBlocks> open(const CacheScope& scope, const Match& match,
                                         std::span<const TokenId> prompt,
                                         std::span<const BlockHash> hashes = {});
  // Makes room for `tokens` tokens in all, in blocks that this sequence alone may write.
  std::variant<std::vector<Copy>, OutOfBlocks> reserve(Sequence& sequence, std::uint64_t tokens);
  // The same for rows that are loaded instead of computed, in a sequence that stands between two
  // blocks: window groups get no blocks that a query behind those tokens does not see, and what is
  // committed has no pages there. It takes memory::pages_to_load() blocks. False: there are too
  // few, and nothing was done.
  bool reserve_visible(Sequence& sequence, std::uint64_t tokens);
  // The rows of these tokens are written: they can be found from now on. `duplicates`, where given,
  // gets the blocks that deduplication leaves over instead of the pool: for callers who still have
  // them in use. Pair each with release().
  void commit(Sequence& sequence, std::span<const TokenId> tokens,
              std::vector<BlockId>* duplicates = nullptr);
  // Gives back the blocks behind the last committed row: rows that were written there and not
  // committed are lost.
  void release_unwritten(Sequence& sequence);
  // Ends the hold on a block that left a sequence's table and was handed to the caller: a duplicate
  // of commit(), once no launch uses it, or a page that Sequence::drop_pages() returned, which is
  // counted as dropped `by_policy`. It counts as the block's last use.
  void release(BlockId block, bool by_policy = false);
  // Like commit() of one whole block in whose own pages nothing was written: the sequence goes on
  // with the pages of the block that committing it would deduplicate to. False, and nothing
  // happens, where that block lacks a page in a group in which the sequence has one.
  bool commit_existing(Sequence& sequence, std::span<const TokenId> tokens);
  // The fork shares all blocks, also the last one: whoever writes to that reserves again first. The
  // caller's hashes are not the fork's, which may go on with other tokens than the prompt's.
  Sequence fork(const Sequence& sequence);
  void close(Sequence& sequence);
  // Ends the pin that a copy holds on its source.
  void copied(const Copy& copy);

  // Pins the page of the whole block with this hash so that a store can copy it out: that is not a
  // use. Pair with unpin_page(). Nothing when the node is not live or not whole, was retired, or
  // has another hash or no page in the group.
  std::optional<BlockId> pin_page(NodeId node, const BlockHash& hash, std::uint32_t group);
  void unpin_page(BlockId block);
  // Whole blocks that would be evicted next, soonest first, at most so many; of a chain the last,
  // before which none can go. Blocks that the policy gives another chance come after the others.
  // All stay where they are. Two blocks of every group are looked at for each that is asked for, so
  // that many partial blocks among them leave fewer.
  std::vector<NodeId> eviction_candidates(std::size_t nodes_max) {
    return evictor_.next_to_leave(nodes_max);
  }

  // Keeps the beginning of a sequence: its blocks leave after every block that is not retained, by
  // priority, until the time is over or they are all that is left to make room with. Nothing is
  // retained in part unless the terms say so; an error says why nothing was.
  Result<Retained> retain(const Sequence& sequence, const RetainTerms& terms);
  // Ends a session of the scope's region: what it alone has is evicted first from now on, and what
  // its account retains of that is retained no more. Returns how many nodes that are; nothing where
  // there is no such session.
  std::optional<std::uint64_t> close_session(const CacheScope& scope, std::string_view key) {
    return sessions_.close(scope.salt(), key);
  }
  // The same for one session that was not used for too long. False: there is none.
  bool close_idle_session() { return sessions_.close_due(clock_.time_ns); }
  // Marks the nodes of the scope's own region that only this prompt has, and those that continue it
  // alone, to be evicted first; a node that is in use, that other prompts of the region go on from,
  // or that others retain stays as it is. Returns how many nodes were marked; 0 where sessions are
  // off.
  std::uint64_t demote(const CacheScope& scope, const Match& match);
  // Returns nodes of sessions that ended and of prompts that were demoted, the beginning of a chain
  // first, so that they can be copied elsewhere: each once, at most so many at a call. Retention of
  // them by their own account ends here.
  std::vector<NodeId> take_closed(std::size_t nodes_max);

  // Tells the cache what time it is; time does not run backwards. Blocks that were retained until
  // then are released, a few at a call.
  void advance_time(std::int64_t now_ns);

  // Evicts every idle block, and forgets all sessions. With an owner only those of its private
  // regions: nobody else's blocks and sessions are touched.
  void clear(std::optional<OwnerId> owner = {});
  // Ends the owner's private regions: no later request finds what is in them. Their idle blocks are
  // evicted; those that are held go as soon as nobody holds them, with what their holders add to
  // them, and no store copies them out any more (pin_page). Returns how many were evicted.
  std::uint64_t retire(OwnerId owner) {
    sessions_.forget(owner);
    return evictor_.retire(owner);
  }

 private:
  Namespace& find_namespace(const NamespaceName& name);

  // Holding (cache.cc)
  BlockId take_block();
  void hold(BlockId block);
  bool may_supersede(NodeId node);
  void note_session(Sequence& sequence, const CacheScope& scope, const Match& match);
  void hold_match(Sequence& sequence, const Match& match);
  void release_at(BlockId block, Tick last_use);
  bool is_tail_shared(const Sequence& sequence) const;

  // Publishing (cache_publish.cc)
  SaltId region_of(const Sequence& sequence, std::uint64_t block) const;
  std::optional<NodeId> partial_block(const Sequence& sequence) const;
  void seal_tail(Sequence& sequence, std::vector<BlockId>* duplicates);
  void seal_alone(Sequence& sequence);
  void deduplicate(Sequence& sequence, NodeId node, std::uint64_t block,
                   std::vector<BlockId>* duplicates);
  void stand_on(Sequence& sequence, NodeId node);
  NodeId add_node(const Sequence& sequence, SaltId region, std::uint32_t prompt_end);
  void fit_parts(NodeId node);
  void attach_page(NodeId node, std::uint32_t group, BlockId block, const RequestStats& request);
  void node_sealed(const Sequence& sequence, NodeId node);
  void publish_tail(Sequence& sequence);
  void note_prompt_end(const Sequence& sequence, NodeId node, std::uint64_t block);
  std::optional<std::uint32_t> clear_way(NodeId parent, SaltId region,
                                         std::span<const TokenId> tokens);
  void release_behind_windows(Sequence& sequence);
  void release_before(Sequence& sequence, std::uint32_t group, std::uint64_t tokens);
};

}  // namespace pagoda::kv
