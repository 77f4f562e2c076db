#include "text/word_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace pagoda::text {
namespace {

TEST(WordCache, WordsOfEverySizeHaveTheirOwnKeys) {
  for (std::size_t bytes = 1; bytes <= WordCache::kWordBytesMax; ++bytes) {
    const std::string word(bytes, 'a');
    EXPECT_EQ(WordCache::key_of(word), WordCache::key_of(word));
    if (bytes > 1) {
      EXPECT_NE(WordCache::key_of(word), WordCache::key_of(word.substr(1)));
    }
    for (std::size_t at = 0; at < bytes; ++at) {
      std::string other = word;
      other[at] = 'b';
      EXPECT_NE(WordCache::key_of(word), WordCache::key_of(other)) << bytes << " " << at;
    }
  }
}

// There are far more words than slots, alike at both ends: each lookup finds another word's slot.
TEST(WordCache, AWordNeverGetsAnothersTokens) {
  std::mt19937 random(11);
  WordCache cache;
  const auto token_of = [](std::uint32_t number) { return TokenId(number); };
  const auto word_of = [](std::uint32_t number) {
    return "12345678" + std::to_string(100'000'000 + number) + "87654321";
  };
  std::size_t found = 0;
  for (int i = 0; i < 400'000; ++i) {
    const std::uint32_t number = static_cast<std::uint32_t>(random() % 100'000);
    const auto key = WordCache::key_of(word_of(number));
    if (const auto tokens = cache.find(key)) {
      ASSERT_EQ(tokens->size(), 1U);
      ASSERT_EQ(tokens->front(), token_of(number));
      ++found;
    } else {
      const TokenId token = token_of(number);
      cache.insert(key, {&token, 1});
    }
  }
  EXPECT_GT(found, 10'000U);
}

TEST(WordCache, WordsWithTooManyTokensAreNotKept) {
  WordCache cache;
  const auto key = WordCache::key_of("word");
  const std::vector<TokenId> tokens(WordCache::kTokensMax + 1);
  cache.insert(key, tokens);
  EXPECT_FALSE(cache.find(key).has_value());
  cache.insert(key, std::span(tokens).first(WordCache::kTokensMax));
  EXPECT_EQ(cache.find(key)->size(), WordCache::kTokensMax);
  cache.insert(key, {});
  EXPECT_EQ(cache.find(key)->size(), 0U);
}

}  // namespace
}  // namespace pagoda::text
