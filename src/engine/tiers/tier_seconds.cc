#include "engine/tiers/tier_seconds.h"

#include <algorithm>
#include <numeric>

namespace pagoda::engine {

std::optional<double> seconds_in_tiers(const std::array<std::uint64_t, kTiersMax>& tokens,
                                       double bytes, const PageReads& reads, ComputeSpeed model) {
  const std::uint64_t all = std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0});
  double total = 0;
  for (std::size_t store = 0; store < reads.stores(); ++store) {
    if (tokens[store] == 0) continue;
    const auto here = static_cast<double>(tokens[store]);
    const std::optional<double> bytes_rate = reads.bytes_per_second(store);
    std::optional<double> seconds;
    if (bytes_rate) seconds = here / static_cast<double>(all) * bytes / *bytes_rate;
    const bool may_compute = model.mode == LoadMode::kAuto || !seconds;
    if (model.tokens_per_second && may_compute) {
      const double computing = here / *model.tokens_per_second;
      seconds = std::min(seconds.value_or(computing), computing);
    }
    if (!seconds) return std::nullopt;
    total += *seconds;
  }
  return total;
}

}  // namespace pagoda::engine
