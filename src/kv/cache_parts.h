// The parts of a cache, and what others may read of them: snapshots, reports and tests take a
// const CacheParts&, and only kv::Cache changes one.
//
//   BlockPool, PrefixTree, SaltTable    which blocks exist, which tokens they hold, whose they are
//   PrefixLookup                        where a prefix is matched
//   Evictor                             where a block is evicted: queues, quotas, guards
//   RetentionTable                      which blocks requests asked to be kept
//   SessionTable                        which blocks one conversation alone has
//   BlockHashes, EventFeed              block hashes and events, for readers outside
//   BlockIdentities                     how a block is known again after it left
//   EvictionHistory, Explainer          why a match is not longer
//   CurveFeed                           what other sizes and policies would have given
//
// A part has its own state and check(), and reads those that are built before it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/block_identities.h"
#include "kv/blocks/block_pool.h"
#include "kv/cache_clock.h"
#include "kv/cache_options.h"
#include "kv/cache_values.h"
#include "kv/curve/curve_feed.h"
#include "kv/events/event_feed.h"
#include "kv/evict/evictor.h"
#include "kv/explain/eviction_history.h"
#include "kv/explain/explainer.h"
#include "kv/hash/block_hashes.h"
#include "kv/namespaces.h"
#include "kv/prefix/prefix_lookup.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/retention_table.h"
#include "kv/salt_table.h"
#include "kv/session_table.h"

namespace pagoda::kv {

class CacheParts {
 public:
  CacheParts(const CacheParts&) = delete;
  CacheParts& operator=(const CacheParts&) = delete;

  // Stops the program when an invariant (README: B, T, C, ...) does not hold. Linear.
  void check() const;

  const CacheOptions& options() const { return options_; }
  const CacheClock& clock() const { return clock_; }
  const BlockPool& pool() const { return pool_; }
  const PrefixTree& tree() const { return tree_; }
  const PrefixLookup& lookup() const { return lookup_; }
  const SaltTable& salts() const { return salts_; }
  const Namespaces& namespaces() const { return namespaces_; }
  const BlockHashes& hashes() const { return hashes_; }
  const EventFeed& events() const { return events_; }
  const EvictionHistory& history() const { return history_; }
  const RetentionTable& retention() const { return retention_; }
  const SessionTable& sessions() const { return sessions_; }
  const CurveFeed& curve() const { return curve_; }
  CacheStats stats() const;

 protected:
  explicit CacheParts(const CacheOptions& options);
  ~CacheParts() = default;

  std::uint32_t groups() const { return tree_.groups(); }

  CacheOptions options_;
  CacheClock clock_;
  BlockPool pool_;
  PrefixTree tree_;
  SaltTable salts_;
  Namespaces namespaces_;
  BlockIdentities identities_;
  BlockHashes hashes_;
  EventFeed events_;
  EvictionHistory history_;
  RetentionTable retention_;
  SessionTable sessions_;
  Evictor evictor_;
  PrefixLookup lookup_;
  Explainer explainer_;
  CurveFeed curve_;
  std::uint64_t blocks_deduplicated_ = 0;
  std::uint64_t pages_dropped_ = 0;

 private:
  std::size_t nodes_expected() const;
};

}  // namespace pagoda::kv
