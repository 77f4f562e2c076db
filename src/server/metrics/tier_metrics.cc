// Metrics of the tiers outside the pool: what they hold, load, store and lose. Without tiers there
// are none.
#include <algorithm>
#include <numeric>

#include "server/metrics/metrics.h"

namespace pagoda::server {
namespace {

using Kind = Exposition::Kind;
using TierStatsList = std::vector<engine::TierStats>;

template <class Value>  // value(TierStats, index)
void write_each(Exposition& page, const TierStatsList& tiers, Kind kind, std::string_view name,
                std::string_view help, Value&& value) {
  page.begin(kind, name, help);
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    page.sample(value(tiers[i], i), {{"tier", tiers[i].name}});
  }
}

void write_traffic(Exposition& page, const TierStatsList& tiers, const engine::Snapshot& now) {
  using Tier = engine::TierStats;
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_pages_read", "Pages that came from a tier.",
             [](const Tier& tier, std::size_t) { return tier.stats.pages_read; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_pages_written", "Pages written to a tier.",
             [](const Tier& tier, std::size_t) { return tier.stats.pages_written; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_read_bytes", "Bytes that came from a tier.",
             [](const Tier& tier, std::size_t) { return tier.stats.bytes_read; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_written_bytes", "Bytes written to a tier.",
             [](const Tier& tier, std::size_t) { return tier.stats.bytes_written; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_read_seconds",
             "Seconds in which pages were on their way from a tier.",
             [&](const Tier&, std::size_t i) { return now.tiers[i].seconds_reading; });
  write_each(page, tiers, Kind::kGauge, "pagoda:tier_bytes_per_second",
             "How fast pages came from a tier of late; 0: unknown.",
             [&](const Tier&, std::size_t i) { return now.tiers[i].bytes_per_second; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_prompt_tokens",
             "Prompt tokens whose keys and values came from a tier.",
             [&](const Tier&, std::size_t i) { return now.tiers[i].tokens_loaded; });
}

void write_nodes(Exposition& page, const TierStatsList& tiers) {
  const auto has_nodes = [](const engine::TierStats& tier) { return tier.stats.nodes > 0; };
  if (std::none_of(tiers.begin(), tiers.end(), has_nodes)) return;
  page.begin(Kind::kGauge, "pagoda:tier_nodes", "Servers that keep a tier's pages, by state.");
  for (const engine::TierStats& tier : tiers) {
    if (!has_nodes(tier)) continue;
    page.sample(tier.stats.nodes_on, {{"tier", tier.name}, {"state", "on"}});
    page.sample(tier.stats.nodes - tier.stats.nodes_on, {{"tier", tier.name}, {"state", "off"}});
  }
  page.begin(Kind::kCounter, "pagoda:tier_redirections",
             "Commands that a server of a tier sent to another, or asked to wait.");
  for (const engine::TierStats& tier : tiers) {
    if (has_nodes(tier)) page.sample(tier.stats.redirections, {{"tier", tier.name}});
  }
}

void write_room(Exposition& page, const TierStatsList& tiers) {
  using Tier = engine::TierStats;
  write_each(page, tiers, Kind::kGauge, "pagoda:tier_bytes", "Bytes that a tier holds.",
             [](const Tier& tier, std::size_t) { return tier.stats.bytes_used; });
  write_each(page, tiers, Kind::kGauge, "pagoda:tier_bytes_max",
             "Bytes that a tier may hold; 0: it does not know.",
             [](const Tier& tier, std::size_t) { return tier.stats.bytes_max; });
  write_each(page, tiers, Kind::kGauge, "pagoda:tier_pages", "Pages that a tier holds.",
             [](const Tier& tier, std::size_t) { return tier.stats.pages; });
  write_each(page, tiers, Kind::kGauge, "pagoda:tier_queue",
             "Reads and writes that a tier has not ended.",
             [](const Tier& tier, std::size_t) { return tier.stats.requests_queued; });
  write_each(page, tiers, Kind::kGauge, "pagoda:tier_on",
             "1 while a tier is used, 0 while it is switched off after failures.",
             [](const Tier& tier, std::size_t) { return tier.stats.is_on ? 1 : 0; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_pages_displaced",
             "Pages that made way for others in a tier.",
             [](const Tier& tier, std::size_t) { return tier.stats.pages_evicted; });
  write_each(page, tiers, Kind::kCounter, "pagoda:tier_pages_displaced_unread",
             "Of them, those that were never read.",
             [](const Tier& tier, std::size_t) { return tier.stats.pages_evicted_unread; });
}

}  // namespace

void write_tier_metrics(Exposition& page, const Readings& readings) {
  const TierStatsList tiers = readings.model.engine.tiers();
  if (tiers.empty()) return;
  const engine::Snapshot& now = readings.now;
  write_traffic(page, tiers, now);
  write_room(page, tiers);
  write_nodes(page, tiers);
  page.begin(Kind::kCounter, "pagoda:tier_failures", "Reads and writes that failed, by reason.");
  for (const engine::TierStats& tier : tiers) {
    for (std::size_t i = 1; i < kv::kStoreFaults; ++i) {
      page.sample(tier.stats.faults[i],
                  {{"tier", tier.name}, {"reason", name_of(static_cast<kv::StoreFault>(i))}});
    }
  }
  page.counter("pagoda:load_wait_seconds", "Seconds that requests waited for pages of a tier.",
               now.load_seconds_waited);
  page.counter("pagoda:load_saved_seconds",
               "Seconds that computing what was loaded would have taken beyond that; an estimate.",
               now.load_seconds_saved);
  const auto bytes = [&](auto member) {
    return std::accumulate(
        tiers.begin(), tiers.end(), std::uint64_t{0},
        [&](std::uint64_t sum, const engine::TierStats& tier) { return sum + tier.stats.*member; });
  };
  page.counter("vllm:kv_offload_load_bytes", "Bytes that came from tiers outside memory.",
               bytes(&kv::StoreStats::bytes_read));
  page.counter("vllm:kv_offload_store_bytes", "Bytes written to tiers outside memory.",
               bytes(&kv::StoreStats::bytes_written));
  double seconds = 0;
  for (std::size_t i = 0; i < tiers.size(); ++i) seconds += now.tiers[i].seconds_reading;
  page.counter("vllm:kv_offload_load_time", "Seconds in which pages were on their way from tiers.",
               seconds);
  page.counter("vllm:kv_offload_stores_skipped", "Blocks not written: too many waited.",
               now.tier_blocks_skipped);
}

}  // namespace pagoda::server
