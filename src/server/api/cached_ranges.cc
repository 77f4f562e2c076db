#include "server/api/cached_ranges.h"

#include <algorithm>

namespace pagoda::server {
namespace {

using engine::LoadedRange;

Json range_json(std::uint64_t first, std::uint64_t end, const std::string& tier) {
  return {{"first", first}, {"tokens", end - first}, {"tier", tier}};
}

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
    if (told < end) ranges.push_back(range_json(told, end, "memory"));
    told = std::max(told, end);
  };
  for (const LoadedRange& range : loaded) {
    // What came before the start and was not found there any more is computed like the rest.
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

}  // namespace pagoda::server
