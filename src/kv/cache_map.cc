// Draws the cache for people: which parts of the pool are in use, and what is in the tree.
#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "kv/cache_parts.h"
#include "kv/cache_snapshot.h"
#include "kv/grove.h"

namespace pagoda::kv {
namespace {

// Finds the value that most of a series has, in one pass (Boyer and Moore). The result is right
// where one value has more than half.
struct Majority {
  std::uint32_t value = BlockCell::kNoRegion;
  std::uint32_t lead = 0;

  void add(std::uint32_t next) {
    if (lead == 0) value = next;
    next == value ? ++lead : --lead;
  }
};

void count(BlockCell& cell, BlockState state) {
  switch (state) {
    case BlockState::kFree:
      ++cell.free;
      return;
    case BlockState::kIdle:
      ++cell.idle;
      return;
    case BlockState::kFilling:
    case BlockState::kSealed:
      ++cell.active;
  }
}

class BranchList {
 public:
  BranchList(const CacheParts& cache, const Grove& grove, const MapLimits& limits)
      : tree_(cache.tree()),
        pool_(cache.pool()),
        grove_(grove),
        seen_(grove.nodes),
        limits_(limits) {}

  // A branch has at most the blocks of what it goes on from: taking the largest takes that first.
  std::vector<BranchStats> largest() {
    const auto smaller = [&](const Start& a, const Start& b) {
      return std::tie(seen_[a.at].blocks, b.at) < std::tie(seen_[b.at].blocks, a.at);
    };
    std::priority_queue<Start, std::vector<Start>, decltype(smaller)> starts(smaller);
    const auto push_children = [&](std::size_t at, std::size_t from) {
      for (const std::size_t child : seen_[at].children) starts.push({child, from});
    };
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (tree_.is_root(seen_[i].node)) push_children(i, kTop);
    }
    while (!starts.empty() && taken_.size() < limits_.branches_max) {
      const Start start = starts.top();
      starts.pop();
      const std::size_t index = taken_.size();
      taken_.push_back({draw(start.at), start.from});
      push_children(grove_.end_of(start.at), index);
    }
    std::vector<BranchStats> listed;
    list_below(kTop, 0, listed);
    return listed;
  }

 private:
  static constexpr std::size_t kTop = SIZE_MAX;
  struct Start {
    std::size_t at;    // of seen_
    std::size_t from;  // of taken_, or kTop
  };
  struct Taken {
    BranchStats stats;
    std::size_t from;
  };

  BranchStats draw(std::size_t at) const {
    const NodeId first = seen_[at].node;
    BranchStats stats = {.level = 0,
                         .tokens = {},
                         .tokens_own = 0,
                         .blocks = seen_[at].blocks,
                         .is_public = tree_.region(first) == kPublic,
                         .is_held = is_held(first)};
    const bool shows_text = stats.is_public || limits_.private_tokens;
    for (const std::size_t end = grove_.end_of(at);; at = seen_[at].children.front()) {
      const std::span<const TokenId> tokens = tree_.tokens(seen_[at].node);
      stats.tokens_own += tokens.size();
      for (const TokenId token : tokens) {
        if (!shows_text || stats.tokens.size() == limits_.tokens_max) break;
        stats.tokens.push_back(token.value());
      }
      if (at == end) return stats;
    }
  }

  bool is_held(NodeId node) const {
    for (std::uint32_t group = 0; group < tree_.groups(); ++group) {
      const std::optional<BlockId> page = tree_.page(node, group);
      if (page && pool_.references(*page) > 0) return true;
    }
    return false;
  }

  // Depth is bounded by the number of branches taken.
  void list_below(std::size_t from, std::uint32_t level, std::vector<BranchStats>& listed) {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i].from != from) continue;
      listed.push_back(std::move(taken_[i].stats));
      listed.back().level = level;
      list_below(i, level + 1, listed);
    }
  }

  const PrefixTree& tree_;
  const BlockPool& pool_;
  const Grove& grove_;
  const std::vector<Grove::Seen>& seen_;
  const MapLimits& limits_;
  std::vector<Taken> taken_;  // largest first
};

std::uint32_t divided_up(std::uint32_t value, std::uint32_t by) { return (value + by - 1) / by; }

}  // namespace

CacheMap build_map(const CacheParts& cache, const MapLimits& limits) {
  const BlockPool& pool = cache.pool();
  const std::uint32_t blocks = pool.blocks();
  CacheMap map;
  map.blocks_per_cell = std::max(1u, divided_up(blocks, limits.cells_max));
  const std::uint32_t stride =
      std::min(map.blocks_per_cell, std::max(1u, divided_up(blocks, limits.blocks_max)));
  std::map<std::uint32_t, std::uint64_t> regions;
  GroveWalk walk(cache.tree(), limits.nodes_max);
  for (std::uint32_t first = 0; first < blocks; first += map.blocks_per_cell) {
    BlockCell cell;
    Majority region;
    const std::uint32_t end = std::min(blocks, first + map.blocks_per_cell);
    for (std::uint32_t i = first; i < end; i += stride) {
      const BlockState state = pool.state(BlockId(i));
      count(cell, state);
      const std::optional<NodeId> node =
          state == BlockState::kFree ? std::nullopt : pool.owner(BlockId(i));
      if (!node) continue;
      region.add(cache.salts().account(cache.tree().region(*node)).value());
      if (!walk.full()) walk.add(*node);
    }
    cell.region = region.value;
    map.cells.push_back(cell);
    if (cell.region != BlockCell::kNoRegion) {
      regions[cell.region] = cache.salts().blocks_charged(AccountId(cell.region));
    }
  }
  for (const auto& [region, charged] : regions) {
    map.regions.push_back({region, cache.salts().owner(AccountId(region)), charged});
  }
  std::stable_sort(map.regions.begin(), map.regions.end(),
                   [](const RegionStats& a, const RegionStats& b) { return a.blocks > b.blocks; });

  const Grove grove = walk.finish();
  map.branches = BranchList(cache, grove, limits).largest();
  map.nodes = cache.tree().nodes();
  map.nodes_seen = grove.nodes.size();
  return map;
}

}  // namespace pagoda::kv
