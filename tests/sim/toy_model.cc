#include "sim/toy_model.h"

#include <algorithm>
#include <optional>

namespace pagoda::sim {
namespace {

// One group of a sequence alone: its rows by position, and which of its blocks are left.
class SingleGroup {
 public:
  SingleGroup(const kv::KvPolicy& policy, bool selects, std::uint64_t prompt,
              std::uint32_t block_tokens)
      : policy_(policy), selects_(selects), prompt_(prompt), block_tokens_(block_tokens) {}

  void compute(TokenId token) {
    const Digest before = rows_.empty() ? ToyModel::start(policy_.attention()) : rows_.back();
    rows_.push_back(ToyModel::row(before, token, dropped_.size() * block_tokens_));
    attention_.push_back(0);
    const std::uint64_t position = rows_.size() - 1;
    const bool once = policy_.choice == kv::PageChoice::kSnapKv;
    if (!selects_ || position + policy_.observed < prompt_ || (once && position >= prompt_)) return;
    for (std::uint64_t p = 0; p <= position; ++p) {
      if (is_left(p)) attention_[p] += ToyModel::attention(rows_.back(), rows_[p]);
    }
  }

  // What is left once so many tokens are computed, one block after the other.
  void drop() {
    const bool once = policy_.choice == kv::PageChoice::kSnapKv;
    if (!selects_ || rows_.size() < prompt_ || (once && rows_.size() > prompt_)) return;
    while (seen().size() > policy_.budget) {
      const std::optional<std::uint64_t> block = lowest();
      if (!block) return;
      dropped_.push_back(*block);
    }
  }

  std::vector<Digest> seen() const {
    std::vector<Digest> rows;
    for (std::uint64_t p = 0; p < rows_.size(); ++p) {
      if (is_left(p)) rows.push_back(rows_[p]);
    }
    return rows;
  }

 private:
  bool is_left(std::uint64_t position) const {
    return std::ranges::count(dropped_, position / block_tokens_) == 0;
  }

  // The averaged attention of a token, times the kernel.
  std::uint64_t score(std::uint64_t position, std::uint64_t end) const {
    if (policy_.choice == kv::PageChoice::kH2o) return attention_[position];
    std::uint64_t sum = 0;
    for (std::uint64_t p = 0; p < end; ++p) {
      const std::uint64_t distance = p > position ? p - position : position - p;
      if (2 * distance < policy_.kernel) sum += attention_[p];
    }
    return sum;
  }

  std::optional<std::uint64_t> lowest() const {
    const std::uint64_t end =
        rows_.size() - std::min<std::uint64_t>(rows_.size(), policy_.observed);
    std::optional<std::uint64_t> best;
    std::uint64_t best_score = 0;
    for (std::uint64_t block = 0; (block + 1) * block_tokens_ <= end; ++block) {
      if (!is_left(block * block_tokens_)) continue;
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < block_tokens_; ++i)
        sum += score(block * block_tokens_ + i, end);
      if (best && sum > best_score) continue;  // of equals the later one goes
      best = block;
      best_score = sum;
    }
    return best;
  }

  const kv::KvPolicy& policy_;
  bool selects_;
  std::uint64_t prompt_;
  std::uint64_t block_tokens_;
  std::vector<Digest> rows_;              // [position]
  std::vector<std::uint64_t> attention_;  // [position]
  std::vector<std::uint64_t> dropped_;    // blocks
};

}  // namespace

std::vector<TokenId> ToyModel::generate_single(std::span<const TokenId> prompt,
                                               std::uint64_t sample, std::uint64_t tokens_max,
                                               const kv::KvPolicy& policy,
                                               std::uint32_t block_tokens) const {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  std::vector<SingleGroup> states;
  for (const kv::memory::AttentionSpec& group : groups) {
    states.emplace_back(policy, policy.selects_pages() && group.window == 0, prompt.size(),
                        block_tokens);
  }
  std::size_t computed = 0;
  while (tokens.size() < tokens_max) {
    std::vector<std::vector<Digest>> seen;
    for (SingleGroup& state : states) {
      for (std::size_t i = computed; i < tokens.size(); ++i) {
        if (i > computed) state.drop();
        state.compute(tokens[i]);
      }
      seen.push_back(state.seen());  // what the last token saw, itself among it
      state.drop();
    }
    computed = tokens.size();
    tokens.push_back(
        choose(look(
                   tokens.size() - 1, policy.attention(),
                   [&](std::uint32_t group) { return seen[group].size() - 1; },
                   [&](std::uint32_t group, std::uint64_t at) { return seen[group][at]; }),
               sample));
    if (tokens.back() == kEnd) break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace pagoda::sim
