// Which nodes go first when a prompt is demoted: the end of its chain, as far as nobody else needs
// it.
#pragma once

#include <vector>

#include "kv/blocks/block_pool.h"
#include "kv/evict/evictor.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

// No sequence holds a page of the node.
bool is_idle(const PrefixTree& tree, const BlockPool& pool, NodeId node);

// Returns the tail that may go of the chain through `nodes`, which are at least one, and through
// those below the last of them as long as each has one child in the region. Nodes of other regions
// are neither followed nor looked at: what others have below a public prefix changes nothing.
std::vector<NodeId> nodes_to_demote(const PrefixTree& tree, const BlockPool& pool,
                                    const Evictor& evictor, std::vector<NodeId> nodes,
                                    SaltId region);

}  // namespace pagoda::kv
