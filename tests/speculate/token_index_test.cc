#include "speculate/token_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace pagoda::speculate {
namespace {

using Places = std::vector<std::pair<std::size_t, std::size_t>>;  // end, length

std::vector<TokenId> random_text(std::uint64_t seed, std::size_t tokens, std::uint64_t vocabulary) {
  std::vector<TokenId> text;
  for (std::size_t i = 0; i < tokens; ++i) {
    text.push_back(TokenId(static_cast<std::uint32_t>(random_bits(seed, 1, i) % vocabulary)));
  }
  return text;
}

// Compares every position with the suffix, token by token.
Places search(const std::vector<TokenId>& text, const std::vector<TokenId>& suffix,
              std::size_t gram, std::size_t depth) {
  Places places;
  for (std::size_t end = text.size(); end-- > 0;) {
    std::size_t length = 0;
    while (length < std::min({depth, end, suffix.size()}) &&
           text[end - 1 - length] == suffix[suffix.size() - 1 - length]) {
      ++length;
    }
    if (length >= gram) places.emplace_back(end, length);
  }
  return places;
}

TEST(TokenIndex, FindsWhatASearchOfTheWholeTextFindsNewestFirst) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto gram = static_cast<std::uint32_t>(1 + seed % 4);
    const auto text = random_text(seed, 20 + seed * 7, 2 + seed % 5);
    TokenIndex index(gram, seed % 2 == 0 ? text.size() : 0);
    for (std::size_t have = 1; have <= text.size(); have += 1 + seed % 9) {
      const std::vector<TokenId> grown(text.begin(),
                                       text.begin() + static_cast<std::ptrdiff_t>(have));
      index.catch_up(grown, grown.size());
      Places found;
      index.for_each(grown, grown, 6, SIZE_MAX, [&](std::size_t end, std::size_t length) {
        found.emplace_back(end, length);
        return true;
      });
      EXPECT_EQ(found, search(grown, grown, gram, 6)) << "seed " << seed << ", " << have;
    }
  }
}

TEST(TokenIndex, CatchesUpInPiecesAndLooksAtNoMoreThanItMay) {
  const std::vector<TokenId> text(200, TokenId(3));
  TokenIndex index(2, text.size());
  std::size_t found = 0;
  const auto count = [&](std::size_t /*end*/, std::size_t /*length*/) { return ++found > 0; };
  index.catch_up(text, 50);
  index.for_each(text, text, 8, SIZE_MAX, count);
  EXPECT_EQ(found, 48u) << "positions 2 to 49";
  index.catch_up(text, SIZE_MAX);
  found = 0;
  index.for_each(text, text, 8, 7, count);
  EXPECT_EQ(found, 7u);
  index.clear();
  found = 0;
  index.for_each(text, text, 8, SIZE_MAX, count);
  EXPECT_EQ(found, 0u);
}

}  // namespace
}  // namespace pagoda::speculate
