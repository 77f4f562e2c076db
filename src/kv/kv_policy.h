// KvPolicy bounds what of a sequence's past its rows see, and so how much KV it keeps.
//
//   full              every token before (the default)
//   window:W          the last W tokens, the row's own among them
//   streaming:S+W     those, and the first S tokens: attention sinks (StreamingLLM)
//
// A policy is a mask that depends on positions alone: row i sees key j where j <= i and
// (j > i - W or j < S). Keys stay as they were written. A row that sees a gap, from position S + W
// on, looks at its sinks with a query that is rotated as at position S + W - 1, so that no distance
// is longer than those the model was trained on; at the window it looks as at its own position.
// Rows under one policy are never read under another: the policy is part of the namespace.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::kv {

struct KvPolicy {
  std::uint32_t window = 0;  // 0: full
  std::uint32_t sinks = 0;

  auto operator<=>(const KvPolicy&) const = default;

  bool is_full() const { return window == 0; }
  // What a layer keeps that has no window of its own.
  memory::AttentionSpec attention() const { return {.window = window, .sinks = sinks}; }
  // What a group keeps under the policy: a window of the model's own stays.
  memory::AttentionSpec of(memory::AttentionSpec group) const {
    return group.window != 0 ? group : attention();
  }
  std::vector<memory::AttentionSpec> of(std::span<const memory::AttentionSpec> groups) const;
  // Sinks and window.
  std::uint64_t tokens_kept_max() const { return std::uint64_t{sinks} + window; }
  // How many of the first `tokens` tokens a query behind them does not see.
  std::uint64_t tokens_dropped(std::uint64_t tokens) const;

  // As it is written above; parse() takes it back.
  std::string name() const;
  static Result<KvPolicy> parse(std::string_view text);

  // What enters block hashes where an adapter's name would: the name of the adapter, and of a
  // policy that is not full.
  std::string hash_key(std::string_view adapter) const;
};

}  // namespace pagoda::kv
