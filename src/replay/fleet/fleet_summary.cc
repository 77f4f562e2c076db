#include <algorithm>
#include <cmath>
#include <numeric>

#include "replay/fleet/fleet_report.h"

namespace pagoda::replay {

TtftSummary summarise_ttft(std::vector<std::int64_t> ttft_ns) {
  TtftSummary summary;
  if (ttft_ns.empty()) return summary;
  std::sort(ttft_ns.begin(), ttft_ns.end());
  const auto count = static_cast<double>(ttft_ns.size());
  const auto at = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * count));
    return static_cast<double>(ttft_ns[std::max<std::size_t>(rank, 1) - 1]) * 1e-9;
  };
  double sum = 0;
  for (const std::int64_t ns : ttft_ns) sum += static_cast<double>(ns) * 1e-9;
  return {.mean_s = sum / count,
          .p50_s = at(0.50),
          .p90_s = at(0.90),
          .p99_s = at(0.99),
          .max_s = at(1)};
}

FleetBalance summarise_balance(const FleetResult& result) {
  FleetBalance balance;
  ServerLoad most;
  ServerLoad all;
  for (const ServerLoad& server : result.servers) {
    most.requests = std::max(most.requests, server.requests);
    most.tokens_computed = std::max(most.tokens_computed, server.tokens_computed);
    most.busy_ns = std::max(most.busy_ns, server.busy_ns);
    all.requests += server.requests;
    all.tokens_computed += server.tokens_computed;
    all.busy_ns += server.busy_ns;
  }
  const auto servers = static_cast<double>(result.servers.size());
  const auto over_mean = [&](std::uint64_t highest, std::uint64_t sum) {
    return sum == 0 ? 1.0 : static_cast<double>(highest) * servers / static_cast<double>(sum);
  };
  balance.tokens_max_over_mean = over_mean(most.tokens_computed, all.tokens_computed);
  balance.requests_max_over_mean = over_mean(most.requests, all.requests);
  if (result.span_ns > 0) {
    const auto span = static_cast<double>(result.span_ns);
    balance.busy_mean = static_cast<double>(all.busy_ns) / servers / span;
    balance.busy_max = static_cast<double>(most.busy_ns) / span;
  }
  return balance;
}

}  // namespace pagoda::replay
