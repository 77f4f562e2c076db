// Which idle block goes first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kv/ids.h"

namespace pagoda::kv {

class EvictionOrder;

struct BlockStats {
  Tick created = 0;   // when the block was filled; known only to policies that read it
  Tick last_use = 0;  // when it was last held
};

// Either a pure function of a block's statistics, or an order with a memory of its own. Whatever it
// says, a node with children stays: the tail of a chain leaves before its head.
struct EvictionPolicy {
  std::string_view name;
  // The block with the largest score leaves first. A score may change only when its block is used,
  // and then only fall: the eviction queue relies on it. nullptr: make_order is given.
  std::int64_t (*score)(const BlockStats& stats) = nullptr;
  // It costs 8 bytes a block, which the others save.
  bool reads_created = false;
  // Does a small cache with a sample of the blocks find the share that the whole cache does? Where
  // a policy's queues tell the blocks of one chain apart it does not: a sample of a chain has too
  // few.
  bool can_be_sampled = true;
  // For a cache of so many blocks (eviction_order.h).
  std::unique_ptr<EvictionOrder> (*make_order)(std::uint32_t blocks) = nullptr;
};

const EvictionPolicy& lru_policy();           // least recently used: the default
const EvictionPolicy& fifo_policy();          // first filled
const EvictionPolicy& lfu_aging_policy();     // greedy_dual.h
const EvictionPolicy& slru_policy();          // slru.h
const EvictionPolicy& s3fifo_policy();        // s3fifo.h
const EvictionPolicy& arc_policy();           // arc.h
const EvictionPolicy& time_to_live_policy();  // time_to_live.h
const EvictionPolicy& cost_policy();          // greedy_dual.h
const EvictionPolicy& continuation_policy();  // continuation.h
std::span<const EvictionPolicy* const> eviction_policies();
const EvictionPolicy* find_policy(std::string_view name);  // nullptr when there is none

}  // namespace pagoda::kv
