// The label under which a block's page leaves the pool.
#pragma once

#include <cstdint>

#include "engine/tiers/tier_options.h"
#include "kv/cache.h"

namespace pagoda::engine {

// The node is live and whole.
inline kv::PageLabel label_of(const kv::Cache& cache, const TierOptions& options,
                              const kv::SpaceId& space, kv::NodeId node, std::uint32_t group) {
  const kv::PrefixTree& tree = cache.tree();
  const auto tokens = tree.tokens(node);
  const kv::SaltId region = tree.region(node);
  const bool is_public = region == kv::kPublic || !options.owner_tag;
  return {.key = {.space = space, .hash = cache.hashes().of(node), .group = group},
          .owner = is_public ? kv::OwnerTag{} : options.owner_tag(cache.salts().owner(region)),
          .parent = cache.hashes().of(tree.parent(node)),
          .tokens = {tokens.begin(), tokens.end()}};
}

}  // namespace pagoda::engine
