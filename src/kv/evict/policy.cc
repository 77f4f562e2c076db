#include "kv/evict/policy.h"

#include <array>

#include "kv/evict/arc.h"
#include "kv/evict/continuation.h"
#include "kv/evict/greedy_dual.h"
#include "kv/evict/s3fifo.h"
#include "kv/evict/slru.h"
#include "kv/evict/time_to_live.h"

namespace pagoda::kv {
namespace {

// Where attention over what came before costs as much as the weights do: 6 x the width, and models
// are some 4096 wide.
constexpr std::uint64_t kTokensDoubling = 24576;

using MakeOrder = std::unique_ptr<EvictionOrder> (*)(std::uint32_t blocks);

template <class Order>
std::unique_ptr<EvictionOrder> make(std::uint32_t blocks) {
  return std::make_unique<Order>(blocks);
}

template <std::uint64_t kDoubling>
std::unique_ptr<EvictionOrder> make_greedy_dual(std::uint32_t blocks) {
  return std::make_unique<GreedyDual>(blocks, kDoubling);
}

constexpr EvictionPolicy with_order(std::string_view name, MakeOrder make_order,
                                    bool can_be_sampled = true) {
  return {.name = name,
          .score = nullptr,
          .reads_created = false,
          .can_be_sampled = can_be_sampled,
          .make_order = make_order};
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
  static constexpr EvictionPolicy kPolicy = with_order("lfu", make_greedy_dual<0>);
  return kPolicy;
}

const EvictionPolicy& slru_policy() {
  static constexpr EvictionPolicy kPolicy = with_order("slru", make<Slru>);
  return kPolicy;
}

const EvictionPolicy& s3fifo_policy() {
  static constexpr EvictionPolicy kPolicy =
      with_order("s3fifo", make<S3Fifo>, /*can_be_sampled=*/false);
  return kPolicy;
}

const EvictionPolicy& arc_policy() {
  static constexpr EvictionPolicy kPolicy = with_order("arc", make<Arc>);
  return kPolicy;
}

const EvictionPolicy& time_to_live_policy() {
  static constexpr EvictionPolicy kPolicy = with_order("ttl", make<TimeToLive>);
  return kPolicy;
}

const EvictionPolicy& cost_policy() {
  static constexpr EvictionPolicy kPolicy = with_order("cost", make_greedy_dual<kTokensDoubling>);
  return kPolicy;
}

const EvictionPolicy& continuation_policy() {
  static constexpr EvictionPolicy kPolicy = with_order("continuation", make<Continuation>);
  return kPolicy;
}

std::span<const EvictionPolicy* const> eviction_policies() {
  static const std::array<const EvictionPolicy*, 9> kPolicies = {
      &lru_policy(),          &fifo_policy(),   &lfu_aging_policy(),
      &slru_policy(),         &s3fifo_policy(), &arc_policy(),
      &time_to_live_policy(), &cost_policy(),   &continuation_policy()};
  return kPolicies;
}

const EvictionPolicy* find_policy(std::string_view name) {
  for (const EvictionPolicy* const policy : eviction_policies()) {
    if (policy->name == name) return policy;
  }
  return nullptr;
}

}  // namespace pagoda::kv
