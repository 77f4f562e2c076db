// PageSelection is what a sequence knows whose KV policy selects pages (h2o, snapkv): the attention
// that its tokens got, and which blocks it has dropped, for every group of layers.
//
// A token's counter is the sum, over observed queries, layers of the group and their query heads,
// of the weight that the token got in the query's softmax, as an integer (kernels/ops.h,
// kAttentionUnit): sums have no order, so that chunks, batches and threads change none. A block's
// score is the sum of its tokens' counters; for snapkv each counter is first added up with those of
// its neighbours, `kernel` in all, of the tokens before the window. Blocks with the lowest scores
// are dropped, of equal ones that at the higher position.
//
// Rows keep their true positions. What is left of a group is read without gaps: the token at
// position p stands in slot p - tokens_dropped(group), counted over the blocks that are left.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/kv_policy.h"

namespace pagoda::kv {

class PageSelection {
 public:
  // The counters of the first `prompt_tokens` tokens stay where they are in memory until a block is
  // dropped.
  PageSelection(std::size_t groups, std::uint32_t block_tokens, std::uint64_t prompt_tokens)
      : block_tokens_(block_tokens), groups_(groups) {
    for (Group& group : groups_) group.counters.reserve(prompt_tokens);
  }

  bool has_dropped() const { return has_dropped_; }
  bool is_dropped(std::uint32_t group, std::uint64_t block) const {
    const std::vector<bool>& dropped = groups_[group].dropped;
    return block < dropped.size() && dropped[block];
  }
  std::uint64_t blocks_dropped(std::uint32_t group) const { return groups_[group].blocks_dropped; }
  std::uint64_t tokens_dropped(std::uint32_t group) const {
    return blocks_dropped(group) * block_tokens_;
  }
  // Pages of all groups.
  std::uint64_t pages_dropped() const;

  // The counters of the group by slot, with room for a sequence of so many tokens; new ones are 0.
  std::uint64_t* counters(std::uint32_t group, std::uint64_t tokens);

  // Chooses the blocks of the group that the policy drops now, marks them as dropped and returns
  // them, ascending.
  std::vector<std::uint64_t> drop(const KvPolicy& policy, SequenceLengths lengths,
                                  std::uint32_t group);

 private:
  struct Group {
    std::vector<std::uint64_t> counters;  // [slot]
    std::vector<bool> dropped;            // [block]; false behind its end
    std::uint64_t blocks_dropped = 0;
  };
  // Attention as counters have it, times tokens of a kernel: 2^64 is too small for long windows.
  __extension__ using Sum = unsigned __int128;
  struct BlockScore {
    Sum score;
    std::uint64_t block;
    std::uint64_t slot;  // of its first token
  };

  Sum score_of(const KvPolicy& policy, const Group& group, std::uint64_t slot,
               std::uint64_t slots) const;

  std::uint32_t block_tokens_;
  std::vector<Group> groups_;
  bool has_dropped_ = false;
};

}  // namespace pagoda::kv
