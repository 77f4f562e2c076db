#include "server/api/cached_ranges.h"

#include <algorithm>

namespace pagoda::server {
namespace {

using engine::LoadedRange;

Json range_json(std::uint64_t first, std::uint64_t end, const std::string& tier) {
  return {{"first", first}, {"tokens", end - first}, {"tier", tier}};
}

constexpr const char* kMemory = "memory";

}  // namespace

Json cached_ranges_json(std::uint64_t prompt_tokens, std::uint64_t cached,
                        const engine::LoadRecord& load, std::span<const std::string> tiers) {
  std::vector<LoadedRange> loaded = load.ranges;
  std::stable_sort(loaded.begin(), loaded.end(),
                   [](const LoadedRange& a, const LoadedRange& b) { return a.first < b.first; });
  Json ranges = Json::array();
  std::uint64_t told = 0;  // tokens up to here are settled
  const auto tell_memory_up_to = [&](std::uint64_t end) {
    end = std::min(end, cached);
    if (told < end) ranges.push_back(range_json(told, end, kMemory));
    told = std::max(told, end);
  };
  for (const LoadedRange& range : loaded) {
    // Tokens that came before the start and were lost again by then are computed like the rest.
    const std::uint64_t end = std::min(range.end, range.after_start ? prompt_tokens : cached);
    tell_memory_up_to(range.first);
    const std::uint64_t first = std::max(range.first, told);
    if (first >= end || range.store >= tiers.size()) continue;
    ranges.push_back(range_json(first, end, tiers[range.store]));
    told = end;
  }
  tell_memory_up_to(cached);
  return ranges;
}

Json matched_by_tier_json(const Json& ranges, std::uint64_t matched) {
  std::uint64_t of_tiers = 0;
  for (const Json& range : ranges) {
    const auto first = range["first"].get<std::uint64_t>();
    if (range["tier"] == kMemory || first >= matched) continue;
    of_tiers += std::min(range["tokens"].get<std::uint64_t>(), matched - first);
  }
  return {{kMemory, matched - of_tiers}, {"tier", of_tiers}};
}

Json loaded_by_tier_json(const engine::LoadRecord& load, std::span<const std::string> tiers) {
  Json by_tier = Json::object();
  for (std::size_t i = 0; i < tiers.size(); ++i) by_tier[tiers[i]] = load.tokens[i];
  return by_tier;
}

}  // namespace pagoda::server
