// Where blocks are evicted: makes room, and takes pages from their nodes.
//
// The evictor knows which idle blocks may go (eviction_rules.h), which of them goes first
// (eviction_candidates.h) and how many there are (guards.h). A page that goes is told to the
// eviction history and the events, and a node that nothing needs any more is erased from the tree.
//
// Told: what happens to blocks, nodes and requests. Answers: how many blocks a request can get.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/blocks/block_pool.h"
#include "kv/cache_options.h"
#include "kv/events/event_feed.h"
#include "kv/evict/eviction_candidates.h"
#include "kv/evict/eviction_rules.h"
#include "kv/evict/guards.h"
#include "kv/explain/eviction_history.h"
#include "kv/explanation.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/retention.h"
#include "kv/retention_table.h"
#include "kv/salt_table.h"
#include "kv/session_table.h"

namespace pagoda::kv {

class Evictor {
 public:
  // All of them must outlive the evictor.
  struct Parts {
    BlockPool& pool;
    PrefixTree& tree;
    SaltTable& salts;
    RetentionTable& retention;
    SessionTable& sessions;
    EventFeed& events;
    EvictionHistory& history;
    const BlockIdentities& identities;
    CacheClock& clock;
  };

  // Memory for so many nodes is taken at once.
  Evictor(const CacheOptions& options, std::size_t nodes, const Parts& parts);

  // These are for the candidates (see there).
  void account_opened() { candidates_.account_opened(); }
  void block_allocated(BlockId block) { candidates_.block_allocated(block); }
  void page_sealed(NodeId node, std::uint32_t group) { candidates_.page_sealed(node, group); }
  void page_used(BlockId block, const RequestStats& request) {
    candidates_.page_used(block, request);
  }
  void request_ended(BlockId block) { candidates_.request_ended(block); }

  // Makes room for the node, a root or a block.
  void node_added(NodeId node) { guards_.node_added(node); }
  // The block is a page of the node from now on, for a request.
  void page_attached(NodeId node, BlockId block, const RequestStats& request);
  // A page of the node that was idle is held.
  void page_held(NodeId node) { guards_.update(node); }
  // A page of the node is idle: nobody holds it any more.
  void page_released(NodeId node) {
    guards_.update(node);
    candidates_.push_node(node);  // its other pages may have waited for this one
    if (in_.salts.is_retired(in_.tree.region(node))) drop_retired(node);
  }
  // The node lost a sequence that stood on it, a page or a child: erases the nodes that nothing
  // needs any more, upwards, and queues what may be evicted now.
  void settle(NodeId node);

  // Evicts until so many blocks are free, for a request of the tenant. So many are available.
  void make_room(std::uint64_t blocks, std::uint32_t tenant);
  // Takes all pages from a partial block that makes way for a longer one.
  void remove(NodeId node) { take_pages(node); }
  // Evicts every idle block.
  void clear();
  // Evicts every idle block of the owner's private regions, and no other.
  void clear(OwnerId owner);
  // Retires the owner's regions and evicts what is idle in them. Returns how many blocks went.
  std::uint64_t retire(OwnerId owner);

  // Retains the beginning of a sequence that has these whole blocks. An error says why nothing was
  // retained.
  Result<Retained> retain(SaltId salt, const RetainTerms& terms, std::span<const NodeId> nodes);
  // Does another account than that of its region retain the node?
  bool is_retained_by_others(NodeId node) const { return candidates_.is_retained_by_others(node); }
  // Ends the retention of a node by its own account; a node that another account retains stays
  // retained.
  void end_own_grant(NodeId node);
  // Releases nodes whose time to be retained is over, at most 64 of them.
  void release_due();

  // See Cache::eviction_candidates().
  std::vector<NodeId> next_to_leave(std::size_t nodes_max);

  // Blocks that are free, or idle and not guarded: so many a request can get.
  std::uint64_t blocks_available() const {
    return std::uint64_t{in_.pool.blocks_free()} + in_.pool.blocks_idle() - guards_.blocks();
  }
  // Is the node's page one of blocks_available() now, and no more once it is held?
  bool is_available(NodeId node, std::uint32_t group) const {
    if (in_.pool.state(in_.tree.page(node, group).value()) != BlockState::kIdle) return false;
    return rules_.is_window(node, group) || !guards_.is_guarded(node);
  }
  std::uint64_t blocks_evicted() const { return blocks_evicted_; }
  const EvictionCounts& blocks_evicted_by_cause() const { return blocks_evicted_by_cause_; }

  // Stops the program when an invariant of pages and their nodes (README: C) does not hold. Linear.
  void check() const;

 private:
  // Why a block is evicted: for a request of the tenant, or because all blocks are.
  struct Trigger {
    std::uint32_t tenant = 0;
    bool is_reset = false;
    bool by_quota = false;
    bool is_superseded = false;
  };

  bool evict_next(Trigger trigger);
  void evict(BlockId block, const Trigger& trigger);
  EvictionCause cause_of(NodeId node, const Trigger& trigger) const;
  void take_page(NodeId node, std::uint32_t group);
  void take_pages(NodeId node);
  void erase(NodeId node);
  void drop_retired(NodeId node);
  bool is_owned(NodeId node, OwnerId owner) const;

  Parts in_;
  EvictionRules rules_;
  Guards guards_;
  EvictionCandidates candidates_;
  std::uint64_t blocks_evicted_ = 0;
  EvictionCounts blocks_evicted_by_cause_ = {};
};

}  // namespace pagoda::kv
