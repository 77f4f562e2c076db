#include "kv/evict/policy.h"

#include <array>

#include "kv/evict/arc.h"
#include "kv/evict/lfu_aging.h"
#include "kv/evict/s3fifo.h"
#include "kv/evict/slru.h"

namespace pagoda::kv {
namespace {

template <class Order>
std::unique_ptr<EvictionOrder> make(std::uint32_t blocks) {
  return std::make_unique<Order>(blocks);
}

template <class Order>
constexpr EvictionPolicy with_order(std::string_view name) {
  return {.name = name, .score = nullptr, .reads_created = false, .make_order = make<Order>};
}

}  // namespace

const EvictionPolicy& lru_policy() {
  static constexpr EvictionPolicy kPolicy = {.name = "lru", .score = [](const BlockStats& stats) {
                                               return -static_cast<std::int64_t>(stats.last_use);
                                             }};
  return kPolicy;
}

const EvictionPolicy& fifo_policy() {
  static constexpr EvictionPolicy kPolicy = {
      .name = "fifo",
      .score = [](const BlockStats& stats) { return -static_cast<std::int64_t>(stats.created); },
      .reads_created = true};
  return kPolicy;
}

const EvictionPolicy& lfu_aging_policy() {
  static constexpr EvictionPolicy kPolicy = with_order<LfuAging>("lfu");
  return kPolicy;
}

const EvictionPolicy& slru_policy() {
  static constexpr EvictionPolicy kPolicy = with_order<Slru>("slru");
  return kPolicy;
}

const EvictionPolicy& s3fifo_policy() {
  static constexpr EvictionPolicy kPolicy = with_order<S3Fifo>("s3fifo");
  return kPolicy;
}

const EvictionPolicy& arc_policy() {
  static constexpr EvictionPolicy kPolicy = with_order<Arc>("arc");
  return kPolicy;
}

std::span<const EvictionPolicy* const> eviction_policies() {
  static const std::array<const EvictionPolicy*, 6> kPolicies = {
      &lru_policy(),  &fifo_policy(),   &lfu_aging_policy(),
      &slru_policy(), &s3fifo_policy(), &arc_policy()};
  return kPolicies;
}

const EvictionPolicy* find_policy(std::string_view name) {
  for (const EvictionPolicy* const policy : eviction_policies()) {
    if (policy->name == name) return policy;
  }
  return nullptr;
}

}  // namespace pagoda::kv
