// CacheOptions: the parameters of a cache, fixed for its life.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kv/evict/policy.h"
#include "kv/ids.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::kv {

class EventRing;

struct CacheOptions {
  std::uint32_t blocks = 0;  // pages of all groups together
  std::uint32_t block_tokens = 16;
  std::vector<memory::AttentionSpec> groups = {{}};
  const EvictionPolicy* policy = &lru_policy();
  std::uint64_t hash_seed = 0;
  // The tokens that a block counts for where a policy weighs positions; 0: block_tokens. A replay
  // sets it, whose blocks of one token stand for more.
  std::uint32_t block_tokens_weighed = 0;
  // An account with more blocks than its quota loses blocks first. 0: no quota.
  std::uint64_t quota_blocks_private = 0;  // of each private account
  std::uint64_t quota_blocks_public = 0;
  // The blocks that one account may have retained; 0: none. All accounts together may have half
  // the pool.
  std::uint64_t retain_blocks_max = 0;
  // Requests may name sessions (session_table.h), which end when they were not used for so long; 0:
  // they do not end by themselves.
  bool sessions = false;
  std::int64_t session_timeout_ns = 0;
  // The cache remembers this many evictions for explain(); 0: none.
  std::uint32_t eviction_records_max = 0;
  bool hash_blocks = false;   // every whole block gets a hash (hash/block_hash.h)
  bool find_by_hash = false;  // ... and BlockHashes::find() knows whose it is
  bool live_curve = false;    // the cache keeps a curve of other sizes and policies (curve.h)
  // The ring gets the cache's events and must outlive the cache. Blocks are hashed then. nullptr:
  // nobody reads events.
  EventRing* events = nullptr;
  // False: no prompt finds anything and nothing is published; a block is free once nobody holds
  // it. Forks share as ever.
  bool share = true;
  // The cache calls it before it gives up a duplicate, while both blocks are held: dev builds
  // compare their bytes, which must be equal.
  std::function<void(BlockId mine, BlockId existing)> on_deduplicate = {};

  bool hashes_blocks() const { return hash_blocks || events != nullptr; }
  bool keeps_curve() const { return live_curve && share; }
  // Does a part know blocks by their identity: a policy's order, the eviction history or the curve?
  bool reads_identities() const {
    return policy->make_order != nullptr || eviction_records_max > 0 || keeps_curve();
  }
  std::uint32_t tokens_weighed() const {
    return block_tokens_weighed > 0 ? block_tokens_weighed : block_tokens;
  }
};

}  // namespace pagoda::kv
