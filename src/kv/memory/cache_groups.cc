#include "kv/memory/cache_groups.h"

#include <algorithm>
#include <map>

#include "base/assert.h"

namespace pagoda::kv::memory {
namespace {

using Kinds = std::map<LayerKind, std::vector<std::size_t>>;  // layers of each kind, in order

Kinds kinds_of(std::span<const LayerKind> layers) {
  ASSERT(!layers.empty(), "a model has layers");
  Kinds kinds;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const PageLayout& layout = layers[layer].layout;
    ASSERT(layout.layers == 1 && layout.unused_bytes == 0 && layout.page_bytes() > 0,
           "a kind describes one layer");
    ASSERT(layout.block_tokens == layers.front().layout.block_tokens,
           "a block has as many tokens in every group");
    kinds[layers[layer]].push_back(layer);
  }
  return kinds;
}

// Returns the bytes of one block over all groups, with pages of this size.
std::size_t bytes_over_groups(const Kinds& kinds, std::size_t page_bytes) {
  std::size_t groups = 0;
  for (const auto& [kind, members] : kinds) {
    const std::size_t per_group = page_bytes / kind.layout.layer_bytes();
    ASSERT(per_group > 0, "a page holds a layer of every kind");
    groups += (members.size() + per_group - 1) / per_group;
  }
  return groups * page_bytes;
}

std::size_t best_page_bytes(const Kinds& kinds) {
  std::size_t smallest = 0;
  for (const auto& [kind, members] : kinds) {
    smallest = std::max(smallest, kind.layout.layer_bytes());
  }
  std::size_t best = smallest;
  for (const auto& [kind, members] : kinds) {
    for (std::size_t count = 1; count <= members.size(); ++count) {
      const std::size_t bytes = count * kind.layout.layer_bytes();
      if (bytes < smallest) continue;
      const std::size_t cost = bytes_over_groups(kinds, bytes);
      const std::size_t cost_of_best = bytes_over_groups(kinds, best);
      if (cost < cost_of_best || (cost == cost_of_best && bytes > best)) best = bytes;
    }
  }
  return best;
}

}  // namespace

std::uint64_t pages_to_load(std::span<const AttentionSpec> groups, std::uint32_t block_tokens,
                            std::uint64_t blocks_matched, std::uint64_t tokens) {
  const std::uint64_t end = (tokens + block_tokens - 1) / block_tokens;
  std::uint64_t pages = 0;
  for (const AttentionSpec& spec : groups) {
    pages += BlocksKept(spec, tokens, block_tokens).count(std::min(blocks_matched, end), end);
  }
  return pages;
}

CacheGroupPlan plan_cache_groups(std::span<const LayerKind> layers) {
  const Kinds kinds = kinds_of(layers);
  const std::size_t page_bytes = best_page_bytes(kinds);
  CacheGroupPlan plan;
  plan.locations.resize(layers.size());
  for (const auto& [kind, members] : kinds) {
    const std::size_t per_group = page_bytes / kind.layout.layer_bytes();
    for (std::size_t begin = 0; begin < members.size(); begin += per_group) {
      const std::size_t count = std::min(per_group, members.size() - begin);
      const auto group = static_cast<std::uint32_t>(plan.groups.size());
      for (std::uint32_t i = 0; i < count; ++i) plan.locations[members[begin + i]] = {group, i};
      PageLayout layout = kind.layout;
      layout.layers = static_cast<std::uint32_t>(count);
      layout.unused_bytes = page_bytes - count * layout.layer_bytes();
      plan.groups.push_back(kind.attention);
      plan.layouts.push_back(layout);
    }
  }
  return plan;
}

}  // namespace pagoda::kv::memory
