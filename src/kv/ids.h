// Names inside the cache.
#pragma once

#include "base/strong_id.h"

namespace pagoda::kv {

// A page's place in the pool: page p starts at byte p * page_bytes.
using BlockId = StrongId<struct BlockTag, std::uint32_t>;

// A node of the prefix tree.
using NodeId = StrongId<struct NodeTag, std::uint32_t>;

// A tenant's private region, interned by the cache. Salt 0 is the public region.
using SaltId = StrongId<struct SaltTag, std::uint32_t>;
inline constexpr SaltId kPublic{0};

// Who several salts belong to, as the cache's user numbers them; blocks are never found by it. 0:
// nobody; then each salt is a tenant of its own.
using OwnerId = StrongId<struct OwnerIdTag, std::uint32_t>;
inline constexpr OwnerId kNoOwner{0};

// Quotas and budgets are counted by account: all regions of one owner, or one region that nobody
// owns. Account 0 is the public region's.
using AccountId = StrongId<struct AccountTag, std::uint32_t>;
inline constexpr AccountId kPublicAccount{0};

// Counts what happens in the cache: a later event has a larger tick.
using Tick = std::uint64_t;

}  // namespace pagoda::kv
