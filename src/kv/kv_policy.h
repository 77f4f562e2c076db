// KvPolicy bounds what of a sequence's past its rows see, and so how much KV it keeps.
//
//   full                    every token before (the default)
//   window:W                the last W tokens, the row's own among them
//   streaming:S+W           those, and the first S tokens: attention sinks (StreamingLLM)
//   h2o:BUDGET+RECENT       pages of about BUDGET tokens, by the attention that they got so far,
//   and
//                           those of the last RECENT tokens (H2O)
//   snapkv:BUDGET+WINDOW    the same, chosen once: when the prompt is computed, by the attention of
//                           its last WINDOW tokens, averaged over neighbours (SnapKV)
//
// The first three are masks that depend on positions alone: row i sees key j where j <= i and
// (j > i - W or j < S). Keys stay as they were written. A row that sees a gap, from position S + W
// on, looks at its sinks with a query that is rotated as at position S + W - 1, so that no distance
// is longer than those the model was trained on; at the window it looks as at its own position.
// Rows under one mask are never read under another: the mask is part of the namespace.
//
// The last two *select pages* (kv/page_selection.h): how many blocks a sequence has dropped is a
// function of its lengths, which ones of the attention that was observed. Rows of the prompt, and
// all rows before the first drop, see everything and are the same whatever the policy's numbers:
// they share one namespace. Rows after it are never published.
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

enum class PageChoice : std::uint8_t {
  kNone,    // a mask, or all pages
  kH2o,     // whenever a group keeps more than the budget, from the end of the prompt on
  kSnapKv,  // once, at the end of the prompt
};

// The lengths of a sequence that decide what a policy has dropped of it.
struct SequenceLengths {
  std::uint64_t prompt = 0;
  std::uint64_t tokens = 0;  // prompt and output
};

struct KvPolicy {
  std::uint32_t window = 0;  // of a mask; 0: none
  std::uint32_t sinks = 0;
  PageChoice choice = PageChoice::kNone;
  std::uint32_t budget = 0;    // tokens that a group keeps where pages are chosen
  std::uint32_t observed = 0;  // h2o: recent tokens, which stay; snapkv: tokens of its window
  std::uint32_t kernel = 0;    // snapkv: neighbours over which scores are averaged; odd

  static constexpr std::uint32_t kRecentDefault = 128;
  static constexpr std::uint32_t kWindowDefault = 64;
  static constexpr std::uint32_t kKernelDefault = 5;
  static constexpr std::uint32_t kKernelMax = 63;

  auto operator<=>(const KvPolicy&) const = default;

  // With as many recent tokens, or as large a window, as is usual: at most half the budget.
  static KvPolicy h2o(std::uint32_t budget);
  static KvPolicy snapkv(std::uint32_t budget);

  bool is_full() const { return window == 0 && !selects_pages(); }
  bool selects_pages() const { return choice != PageChoice::kNone; }
  // The policy that names the namespace of the rows: the same for all that select pages.
  KvPolicy of_rows() const;
  // Returns the mask of a layer that has no window of its own.
  memory::AttentionSpec attention() const { return {.window = window, .sinks = sinks}; }
  // Returns the mask of a group under the policy: a window of the model's own stays.
  memory::AttentionSpec of(memory::AttentionSpec group) const {
    return group.window != 0 ? group : attention();
  }
  std::vector<memory::AttentionSpec> of(std::span<const memory::AttentionSpec> groups) const;
  // Sinks and window, or the budget.
  std::uint64_t tokens_kept_max() const {
    return selects_pages() ? budget : std::uint64_t{sinks} + window;
  }
  // How many of a sequence's tokens a query behind them does not see.
  std::uint64_t tokens_dropped(SequenceLengths lengths, std::uint32_t block_tokens) const;

  // The following are for policies that select pages.

  // Blocks that each group without a window of its own has dropped once so many tokens are
  // computed: enough to keep at most the budget, of those that end before the tokens that stay.
  std::uint64_t blocks_dropped(SequenceLengths lengths, std::uint32_t block_tokens) const;
  // The first token whose block cannot be dropped then.
  std::uint64_t first_kept(SequenceLengths lengths) const;
  // How many tokens may be computed at once behind `lengths.tokens`, so that all of them see the
  // same pages; the greatest number: any.
  std::uint64_t tokens_until_drop(SequenceLengths lengths, std::uint32_t block_tokens) const;
  // The most tokens that a group keeps while a sequence of these lengths is computed.
  std::uint64_t tokens_held_max(SequenceLengths lengths, std::uint32_t block_tokens) const;
  // Only queries from this position on are observed, so that a prefix that is found in the cache
  // ends there at the latest.
  std::uint64_t first_observed(std::uint64_t prompt) const {
    return prompt - (prompt < observed ? prompt : observed);
  }

  // As it is written above, with "/KERNEL" behind the window where that is not the default; parse()
  // takes it back, also without what stands behind the budget.
  std::string name() const;
  static Result<KvPolicy> parse(std::string_view text);

  // Returns the text that enters block hashes in the adapter's place: the adapter's name, followed
  // by the policy's name unless the policy is full. All that select pages have one name.
  std::string hash_key(std::string_view adapter) const;
};

// The error says what a policy that selects pages may have.
Status check_selection(const KvPolicy& policy);

}  // namespace pagoda::kv
