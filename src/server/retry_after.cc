#include "server/retry_after.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace pagoda::server {
namespace {

constexpr std::string_view kRetryHeader = "Retry-After";

std::uint64_t bounded_seconds(double seconds) {
  const double most = static_cast<double>(kRetrySecondsMax);
  if (!(seconds < most)) return kRetrySecondsMax;
  return std::max(kRetrySecondsMin, static_cast<std::uint64_t>(std::ceil(seconds)));
}

// Returns the seconds that the units of one request take; 0 where the rate is not known.
double seconds_of_each(std::uint64_t units, std::uint64_t requests, double per_second) {
  if (requests == 0 || per_second <= 0) return 0;
  return static_cast<double>(units) / static_cast<double>(requests) / per_second;
}

// Returns the tokens per minute of a tenant whose limit of them, and no limit of its queue, can
// have refused it; 0 where it has no such limit.
std::uint64_t refusing_rate(const ServerState& state, const Caller& caller) {
  if (!caller.keys || !state.has_model()) return 0;
  const auto& listed = caller.keys->tenants();
  const auto tenant = std::find_if(listed.begin(), listed.end(), [&](const ListedTenant& one) {
    return one.name == caller.tenant_name;
  });
  if (tenant == listed.end()) return 0;
  const std::vector<engine::TenantStats> now = state.model().engine.tenants();
  const std::uint64_t queued =
      caller.tenant.value() < now.size() ? now[caller.tenant.value()].requests_queued : 0;
  const std::uint64_t queued_max = tenant->limits.requests_queued;
  return queued_max > 0 && queued >= queued_max ? 0 : tenant->limits.tokens_per_minute;
}

}  // namespace

std::uint64_t queue_seconds(const engine::Snapshot& now) {
  const std::uint64_t requests = now.requests_finished;
  const std::uint64_t computed =
      now.prompt_tokens - std::min(now.prompt_tokens, now.prompt_tokens_cached);
  const double each = seconds_of_each(computed, requests, now.prompt_tokens_per_second) +
                      seconds_of_each(now.output_tokens, requests, now.output_tokens_per_second);
  return bounded_seconds(static_cast<double>(now.requests_waiting + 1) * each);
}

std::uint64_t refill_seconds(std::uint64_t tokens, std::uint64_t tokens_per_minute) {
  return bounded_seconds(60 * static_cast<double>(tokens) / static_cast<double>(tokens_per_minute));
}

std::uint64_t retry_after_s(const ServerState& state, std::string_view code) {
  if (state.phase() >= Phase::kDraining) return kRetryStoppingSeconds;
  if (!state.has_model()) return kRetryLoadingSeconds;
  if (code == "device_lost") return kRetrySecondsMax;  // until somebody starts it again
  return queue_seconds(state.model().engine.snapshot());
}

bool lacks_retry_after(const HttpReply& reply) {
  if (reply.status != 429 && reply.status != 503) return false;
  return std::none_of(reply.headers.begin(), reply.headers.end(),
                      [](const auto& header) { return header.first == kRetryHeader; });
}

void add_retry_after(const ServerState& state, const Caller& caller, std::uint64_t prompt_tokens,
                     HttpReply& reply) {
  if (reply.status != 429 || !lacks_retry_after(reply)) return;
  const std::uint64_t rate = refusing_rate(state, caller);
  if (rate == 0) return;
  reply.headers.emplace_back(kRetryHeader, std::to_string(refill_seconds(prompt_tokens, rate)));
}

}  // namespace pagoda::server
