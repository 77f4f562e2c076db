#include <fmt/format.h>

#include <algorithm>

#include "replay/fleet/fleet_options.h"

namespace pagoda::replay {

Result<FleetTier> parse_fleet_tier(std::string_view text, std::uint64_t block_bytes) {
  const auto refused = [&](std::string_view reason) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`tier`: '{}' {}; expected host:64GiB, disk:1TiB, shared:200% or peer "
                             "(a kind, and how much it holds as `capacity` says it)",
                             text, reason)};
  };
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* const found = std::find(kFleetTierNames.begin(), kFleetTierNames.end(), name);
  if (found == kFleetTierNames.end()) return refused("is no tier");
  FleetTier tier = {.kind = static_cast<FleetTierKind>(found - kFleetTierNames.begin())};
  if (tier.kind == FleetTierKind::kPeer) {
    if (colon != std::string_view::npos) return refused("has a size, and peers are caches");
    return tier;
  }
  if (colon == std::string_view::npos) return refused("has no size");
  ASSIGN_OR_RETURN(std::vector<Capacity> capacities,
                   parse_capacities(text.substr(colon + 1), block_bytes));
  if (capacities.size() != 1) return refused("has several sizes");
  tier.capacity = std::move(capacities.front());
  return tier;
}

}  // namespace pagoda::replay
