#include "kv/evict/policy.h"

#include <array>

namespace pagoda::kv {

const EvictionPolicy& lru_policy() {
  static constexpr EvictionPolicy kPolicy = {
      "lru", [](const BlockStats& stats) { return -static_cast<std::int64_t>(stats.last_use); }};
  return kPolicy;
}

const EvictionPolicy& fifo_policy() {
  static constexpr EvictionPolicy kPolicy = {
      .name = "fifo",
      .score = [](const BlockStats& stats) { return -static_cast<std::int64_t>(stats.created); },
      .reads_created = true};
  return kPolicy;
}

std::span<const EvictionPolicy* const> eviction_policies() {
  static const std::array<const EvictionPolicy*, 2> kPolicies = {&lru_policy(), &fifo_policy()};
  return kPolicies;
}

const EvictionPolicy* find_policy(std::string_view name) {
  for (const EvictionPolicy* const policy : eviction_policies()) {
    if (policy->name == name) return policy;
  }
  return nullptr;
}

}  // namespace pagoda::kv
