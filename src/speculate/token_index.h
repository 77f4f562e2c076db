// TokenIndex finds where a text had its last tokens before: chains of the positions behind equal
// grams (a gram is so many tokens in a row), newest first. The text grows at its end and is kept by
// the owner.
//
// 4 bytes a token, and 4 bytes a chain. Within the tokens that it was made for, nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace pagoda::speculate {

class TokenIndex {
 public:
  // `gram` is at least 1. More tokens than expected are indexed as well.
  TokenIndex(std::uint32_t gram, std::size_t tokens_expected);

  std::uint32_t gram() const { return gram_; }

  // Adds the positions of `text` that another token follows, at most `positions_max` more of them.
  // The text begins with what was added before.
  void catch_up(std::span<const TokenId> text, std::size_t positions_max);
  void clear();

  // Calls visit(end, length) for positions of `text` before which the last `length` tokens of
  // `suffix` stand, at least gram() and at most `depth` of them, newest first, while it returns
  // true. Looks at `candidates_max` positions at most.
  template <class Visit>
  void for_each(std::span<const TokenId> text, std::span<const TokenId> suffix, std::size_t depth,
                std::size_t candidates_max, Visit&& visit) const {
    if (suffix.size() < gram_) return;
    std::uint32_t end = heads_[chain_of(suffix.last(gram_))];
    for (std::size_t looked = 0; end != kNone && looked < candidates_max; ++looked) {
      const std::size_t length = shared_end(text.first(end), suffix, depth);
      if (length >= gram_ && !visit(std::size_t{end}, length)) return;
      end = before_[end];
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::size_t chain_of(std::span<const TokenId> gram) const;
  static std::size_t shared_end(std::span<const TokenId> a, std::span<const TokenId> b,
                                std::size_t most);

  std::uint32_t gram_;
  std::vector<std::uint32_t> heads_;   // [chain]: the newest position
  std::vector<std::uint32_t> before_;  // [position]: the next older one of its chain
};

}  // namespace pagoda::speculate
