// When, why and for whom blocks left: what explain() knows of prompts that were there (README: X2
// to X4).
//
// Told: a block was released, a page leaves. Answers: the log of evictions by identity. 4 bytes a
// block beside the log; nothing when no eviction is remembered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/block_identities.h"
#include "kv/cache_clock.h"
#include "kv/explain/eviction_log.h"
#include "kv/explanation.h"
#include "kv/ids.h"
#include "kv/prefix/prefix_tree.h"

namespace pagoda::kv {

class EvictionHistory {
 public:
  // The unit of EvictionRecord::idle: 32 bits of 10 ms are more than a year.
  static constexpr std::int64_t kIdleUnitNs = 10'000'000;

  struct Options {
    std::uint32_t records_max = 0;  // 0: nothing is remembered
    std::uint32_t blocks = 0;       // of the pool
  };

  // Tree, identities and clock must outlive the history.
  EvictionHistory(const Options& options, const PrefixTree& tree, const BlockIdentities& identities,
                  const CacheClock& clock);

  // A holder gave the block up: it was in use until now.
  void block_released(BlockId block) {
    if (log_) last_held_[block.value()] = now();
  }
  // A page of the node is about to leave: because all do, or to make room for a request of the
  // tenant. Constant time, but for identifying the tokens of a block.
  void page_leaves(NodeId node, BlockId block, EvictionCause cause, std::uint32_t tenant);

  // How long ago a holder gave the block up, to 10 ms; nothing where no eviction is remembered.
  std::optional<std::int64_t> idle_ns(BlockId block) const {
    if (!log_) return std::nullopt;
    return std::int64_t{now() - last_held_[block.value()]} * kIdleUnitNs;
  }

  // The evictions by identity; nullptr where none is remembered.
  const EvictionLog* log() const { return log_ ? &*log_ : nullptr; }

  // Stops the program when the log contradicts itself (README: D1). Linear.
  void check() const {
    if (log_) log_->check();
  }

 private:
  std::uint32_t now() const { return static_cast<std::uint32_t>(clock_.time_ns / kIdleUnitNs); }

  const PrefixTree& tree_;
  const BlockIdentities& identities_;
  const CacheClock& clock_;
  std::optional<EvictionLog> log_;
  std::vector<std::uint32_t> last_held_;  // [block], in units of kIdleUnitNs
};

}  // namespace pagoda::kv
