// Plain values that show the cache at one moment, for tools, pages and tests, and the functions
// that draw them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/ids.h"

namespace pagoda::kv {

struct NodeSnapshot {
  std::uint32_t depth;  // blocks above, the namespace's root not counted
  std::vector<std::uint32_t> tokens;
  bool whole;        // false: a partial block
  std::string hash;  // of whole blocks, when the cache hashes them; 64 digits
  bool is_public;
  bool is_bounded;  // under a KV policy
  std::uint32_t children;
  std::uint32_t pages;       // of how many groups
  std::uint32_t references;  // of its most held page
};

struct CacheSnapshot {
  struct Blocks {
    std::uint64_t all = 0;
    std::uint64_t free = 0;
    std::uint64_t filling = 0;
    std::uint64_t sealed = 0;
    std::uint64_t idle = 0;
  };
  Blocks blocks;
  std::uint64_t blocks_public = 0;  // that nodes of the public region have
  std::uint64_t blocks_evicted = 0;
  std::uint64_t blocks_deduplicated = 0;
  std::uint64_t nodes = 0;  // of all namespaces, roots not counted
  // Depth first, children in order, at most as many as asked for.
  std::vector<NodeSnapshot> tree;
};

// Counts neighbouring blocks of the pool, as far as they were looked at.
struct BlockCell {
  static constexpr std::uint32_t kNoRegion = UINT32_MAX;

  std::uint32_t free = 0;
  std::uint32_t active = 0;
  std::uint32_t idle = 0;
  std::uint32_t region = kNoRegion;  // the account of most of them; 0 is public
};

struct RegionStats {
  std::uint32_t region = 0;  // an account
  OwnerId owner = kNoOwner;
  std::uint64_t blocks = 0;
};

// A branch is a stretch of the tree without a fork, and of one region: a prefix that all blocks
// below it share.
struct BranchStats {
  std::uint32_t level = 0;            // branches above it
  std::vector<std::uint32_t> tokens;  // its first; none of a private one unless they are asked for
  std::uint64_t tokens_own = 0;       // in all, of this stretch
  std::uint64_t blocks = 0;           // of it and of all below
  bool is_public = true;
  bool is_held = false;  // by a running request, at its beginning
};

struct MapLimits {
  std::uint32_t cells_max = 1024;
  std::uint32_t blocks_max = 16384;  // that are looked at
  std::uint32_t nodes_max = 16384;   // that are looked at: those of the blocks, and all above
  std::uint32_t branches_max = 24;
  std::uint32_t tokens_max = 64;  // of a branch
  bool private_tokens = false;    // also those of private branches
};

// The block map shows people where blocks are. Drawing it has a bounded cost, whatever the size of
// the cache.
struct CacheMap {
  std::uint32_t blocks_per_cell = 1;
  std::vector<BlockCell> cells;
  std::vector<RegionStats> regions;   // of the cells, the largest first
  std::vector<BranchStats> branches;  // the largest, each below what it goes on from
  std::uint64_t nodes = 0;            // of the tree, roots included
  std::uint64_t nodes_seen = 0;  // many fewer than nodes: branches may be larger than they seem
};

// A branch as somebody sees who walks the tree: what it holds, who holds it, and when it goes.
struct BranchDetails {
  NodeId node = NodeId(0);            // its first: the branch's number while that node is there
  std::vector<std::uint32_t> tokens;  // its first; none of a private one unless they are asked for
  std::uint64_t tokens_own = 0;       // in all, of this stretch
  std::uint64_t blocks_own = 0;
  std::uint64_t blocks = 0;    // of it and of all below
  std::uint64_t branches = 0;  // that go on from its end
  bool is_public = true;
  OwnerId owner = kNoOwner;
  std::uint32_t sequences = 0;                    // that hold its most held page
  std::optional<std::int64_t> idle_ns = {};       // of its page that was used last; held: nothing
  bool is_retained = false;                       // some of it
  bool is_superseded = false;                     // some of it, by its session
  std::optional<std::size_t> eviction_rank = {};  // of what goes first, here or below; 0 is next
};

struct BranchView {
  std::vector<BranchDetails> above;     // from the top to the branch that was asked for
  std::uint64_t above_all = 0;          // also those in the middle that were left out
  std::optional<BranchDetails> branch;  // nothing at the top
  std::vector<BranchDetails> below;     // the largest first
  std::uint64_t below_all = 0;          // also those that were left out
  std::uint64_t nodes = 0;              // of the tree, roots included
  std::uint64_t nodes_seen = 0;         // fewer than nodes: branches may be larger than they seem
};

struct BranchLimits {
  std::uint32_t nodes_max = 32768;  // that are looked at, as MapLimits says
  std::uint32_t above_max = 64;     // half of them nearest to the top
  std::uint32_t below_max = 64;
  std::uint32_t tokens_max = 64;          // of a branch beside the one that was asked for
  std::uint32_t tokens_branch_max = 512;  // of that
  bool private_tokens = false;            // also those of private branches
};

class CacheParts;

// These read the cache and run on its thread.

// The pool's counts and the first `nodes_max` nodes of the tree. Linear.
CacheSnapshot take_snapshot(const CacheParts& cache, std::size_t nodes_max);
CacheMap build_map(const CacheParts& cache, const MapLimits& limits);
// The branch that the node is part of, or the top of the tree. `leaving` is what goes next, the
// soonest first. Nothing where there is no such node. Its cost is bounded.
std::optional<BranchView> view_branch(const CacheParts& cache, std::optional<NodeId> node,
                                      std::span<const NodeId> leaving, const BranchLimits& limits);
// Whole blocks that have pages, most recently used first: a server that stops keeps the first ones.
// Linear.
std::vector<NodeId> list_whole_blocks(const CacheParts& cache);

}  // namespace pagoda::kv
