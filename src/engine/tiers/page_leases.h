// PageLeases pins pages of the pool for those who serve them to other servers, and bounds how many:
// never more than a share of the pool (TierOptions::lease_share), each page counted once.
//
// How long a lease lasts is its holder's business (kv/tiers/page_lease.h), who is asked to end
// leases where our own requests are short of room and where a tenant is removed.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/tiers/tier_options.h"
#include "kv/cache.h"
#include "kv/tiers/page_lease.h"

namespace pagoda::engine {

class PageLeases {
 public:
  // All arguments must outlive the leases.
  PageLeases(const TierOptions& options, kv::Cache& cache) : options_(options), cache_(cache) {}

  // False: nobody serves pages to others.
  bool is_on() const { return options_.lessee != nullptr; }
  void set_space(const kv::SpaceId& space) { space_ = space; }
  // Nothing more is leased.
  void drop_space() { space_.reset(); }

  // Leases the pages of the first keys: up to the first that the pool lacks or has no room for.
  std::vector<kv::LeasedPage> lease(std::span<const kv::PageKey> keys);
  // Leases what a token behind the blocks sees of them, and gives it to the lessee. Returns how
  // many blocks, from the first, that is good for.
  std::size_t hand_over(std::span<const kv::NodeId> nodes, std::span<const kv::BlockHash> hashes,
                        std::span<const kv::memory::AttentionSpec> groups);
  void end(std::span<const kv::BlockId> blocks);

  // Requests wait for room and nothing runs: leases may be all that is in their way.
  void poll(bool stands_still_for_room);
  void revoke(kv::OwnerId owner);
  bool has_leased(kv::OwnerId owner) const;
  std::size_t pages() const { return leased_.size(); }

 private:
  struct Pinned {
    std::uint32_t leases = 0;
    std::optional<kv::OwnerId> owner;  // set for a private page
  };

  bool may_lease() const;
  std::optional<kv::LeasedPage> lease(kv::NodeId node, const kv::BlockHash& hash,
                                      std::uint32_t group);

  const TierOptions& options_;
  kv::Cache& cache_;
  std::optional<kv::SpaceId> space_;
  std::unordered_map<kv::BlockId, Pinned> leased_;
  bool has_revoked_ = false;  // the lessee was asked for all since the last lease
};

}  // namespace pagoda::engine
