#include "kv/page_selection.h"

#include <algorithm>

namespace pagoda::kv {

std::uint64_t PageSelection::pages_dropped() const {
  std::uint64_t pages = 0;
  for (const Group& group : groups_) pages += group.blocks_dropped;
  return pages;
}

std::uint64_t* PageSelection::counters(std::uint32_t group, std::uint64_t tokens) {
  std::vector<std::uint64_t>& counters = groups_[group].counters;
  const std::uint64_t slots = tokens - tokens_dropped(group);
  if (counters.size() < slots) counters.resize(slots, 0);
  return counters.data();
}

// Scores the block whose first token is in that slot. A counter counts for every neighbour within
// reach, all of them before `slots`.
PageSelection::Sum PageSelection::score_of(const KvPolicy& policy, const Group& group,
                                           std::uint64_t slot, std::uint64_t slots) const {
  const std::uint64_t reach = policy.choice == PageChoice::kSnapKv ? policy.kernel / 2 : 0;
  const std::uint64_t begin = slot - std::min(slot, reach);
  const std::uint64_t end = std::min(slot + block_tokens_ + reach, slots);
  Sum score = 0;
  for (std::uint64_t at = begin; at < end; ++at) {
    const std::uint64_t first = std::max(slot, at - std::min(at, reach));
    const std::uint64_t last = std::min(slot + block_tokens_ - 1, at + reach);
    score += Sum{group.counters[at]} * (last - first + 1);
  }
  return score;
}

std::vector<std::uint64_t> PageSelection::drop(const KvPolicy& policy, SequenceLengths lengths,
                                               std::uint32_t group) {
  Group& of = groups_[group];
  const std::uint64_t wanted = policy.blocks_dropped(lengths, block_tokens_);
  if (wanted <= of.blocks_dropped) return {};
  counters(group, lengths.tokens);
  const std::uint64_t first_kept = policy.first_kept(lengths);
  const std::uint64_t slots = first_kept - of.blocks_dropped * block_tokens_;
  std::vector<BlockScore> scores;
  std::uint64_t slot = 0;
  for (std::uint64_t block = 0; (block + 1) * block_tokens_ <= first_kept; ++block) {
    if (is_dropped(group, block)) continue;
    scores.push_back({score_of(policy, of, slot, slots), block, slot});
    slot += block_tokens_;
  }
  std::sort(scores.begin(), scores.end(), [](const BlockScore& a, const BlockScore& b) {
    return a.score != b.score ? a.score < b.score : a.block > b.block;
  });
  scores.resize(wanted - of.blocks_dropped);
  std::sort(scores.begin(), scores.end(),
            [](const BlockScore& a, const BlockScore& b) { return a.block > b.block; });
  std::vector<std::uint64_t> blocks;
  for (const BlockScore& each : scores) {  // from the last, so that slots before it stay
    const auto first = of.counters.begin() + static_cast<std::ptrdiff_t>(each.slot);
    of.counters.erase(first, first + block_tokens_);
    if (of.dropped.size() <= each.block) of.dropped.resize(each.block + 1, false);
    of.dropped[each.block] = true;
    blocks.push_back(each.block);
  }
  of.blocks_dropped = wanted;
  has_dropped_ = true;
  std::reverse(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace pagoda::kv
