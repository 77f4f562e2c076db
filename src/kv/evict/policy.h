// Which idle block goes first: a pure function on a small struct.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kv/ids.h"

namespace pagoda::kv {

struct BlockStats {
  Tick created = 0;   // when the block was filled; known only to policies that read it
  Tick last_use = 0;  // when it was last held
};

// The block with the largest score leaves first. A score may change only when its block is used,
// and then only fall: the eviction queue relies on it. Whatever the score, a node with children
// stays: the tail of a chain leaves before its head.
struct EvictionPolicy {
  std::string_view name;
  std::int64_t (*score)(const BlockStats& stats);
  // It costs 8 bytes a block, which the others save.
  bool reads_created = false;
};

const EvictionPolicy& lru_policy();   // least recently used: the default
const EvictionPolicy& fifo_policy();  // first filled
std::span<const EvictionPolicy* const> eviction_policies();
const EvictionPolicy* find_policy(std::string_view name);  // nullptr when there is none

}  // namespace pagoda::kv
