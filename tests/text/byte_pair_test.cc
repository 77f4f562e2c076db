#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "text/random_text.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

using Texts = std::vector<std::string>;

// Byte-pair encoding by its definition: compares all pairs, merges the best, starts again.
Texts merge_slowly(const std::string& word, const Texts& merges) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::size_t space = merges[i].find(' ');
    ranks.emplace(std::pair(merges[i].substr(0, space), merges[i].substr(space + 1)), i);
  }
  Texts symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  while (true) {
    std::size_t best = 0;
    std::size_t best_rank = merges.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end() || found->second >= best_rank) continue;
      best = i;
      best_rank = found->second;
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Makes the letters a to d and `count` random merges of the existing symbols.
MadeVocabulary random_vocabulary(std::mt19937& random, std::size_t count) {
  MadeVocabulary made;
  made.tokens = {"a", "b", "c", "d"};
  while (made.merges.size() < count) {
    const std::string left = made.tokens[random() % made.tokens.size()];
    const std::string right = made.tokens[random() % made.tokens.size()];
    if (left.size() + right.size() > 12) continue;
    made.merges.push_back(left + " " + right);
    if (std::find(made.tokens.begin(), made.tokens.end(), left + right) == made.tokens.end()) {
      made.tokens.push_back(left + right);
    }
  }
  return made;
}

TEST(BytePair, MergesAsTheDefinitionSays) {
  std::mt19937 random(5);
  for (int vocabulary = 0; vocabulary < 30; ++vocabulary) {
    const MadeVocabulary made = random_vocabulary(random, 1 + random() % 60);
    const auto tokenizer = made.load_or_fail();
    ASSERT_NE(tokenizer, nullptr);
    for (int i = 0; i < 60; ++i) {
      std::string word;
      const std::size_t letters = i % 2 == 0 ? random() % 40 : random() % 300;
      const std::uint32_t kinds = 1 + static_cast<std::uint32_t>(random() % 4);
      while (word.size() < letters) word += static_cast<char>('a' + random() % kinds);
      EXPECT_EQ(texts(*tokenizer, tokenizer->encode(word, {})), merge_slowly(word, made.merges));
    }
  }
}

TEST(BytePair, EqualPairsMergeLeftmostFirst) {
  MadeVocabulary made;
  made.tokens = {"a", "aa"};
  made.merges = {"a a"};
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("aaa", {})), (Texts{"aa", "a"}));
  std::string word(1001, 'a');
  Texts expected(500, "aa");
  expected.push_back("a");
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode(word, {})), expected);
}

TEST(BytePair, MergesMayPassThroughTextsThatAreNoTokens) {
  MadeVocabulary made;
  made.tokens = {"a", "b", "c", "abc"};
  made.merges = {"a b", "ab c"};
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("abc", {})), (Texts{"abc"}));
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("ab", {})), (Texts{"a", "b"}));
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("abab", {})), (Texts{"a", "b", "a", "b"}));
}

TEST(BytePair, WholeWordsWinOnlyInFamiliesThatSaySo) {
  MadeVocabulary made;
  made.tokens = {"a", "b", "c", "ab", "abc"};
  made.merges = {"a b"};
  EXPECT_EQ(numbers(made.load_or_fail()->encode("abc", {})), (std::vector<std::uint32_t>{3, 2}));
  made.pretokenizer = "llama-bpe";
  EXPECT_EQ(numbers(made.load_or_fail()->encode("abc", {})), (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(numbers(made.load_or_fail()->encode("abcc", {})),
            (std::vector<std::uint32_t>{3, 2, 2}));
}

TEST(BytePair, TypedTextNeverBecomesAControlToken) {
  MadeVocabulary made;
  for (const char* text : {"<", "|", "x", ">", "<|", "<|x", "|>"}) made.add(text);
  made.add("<|x|>", kControl);
  made.merges = {"< |", "<| x", "| >", "<|x |>"};
  for (const char* family : {"gpt-2", "llama-bpe", "gemma4"}) {
    made.pretokenizer = family;
    const auto tokenizer = made.load_or_fail();
    for (const TokenId id : tokenizer->encode("<|x|>", {})) {
      EXPECT_FALSE(tokenizer->is_control(id)) << family;
    }
    EXPECT_EQ(numbers(tokenizer->encode("<|x|>", {.special = true})),
              (std::vector<std::uint32_t>{7}));
  }
}

TEST(BytePair, KimiMergesByTokenOrderWhenTheFileHasNoMerges) {
  MadeVocabulary made;
  made.pretokenizer = "kimi-k2";
  made.tokens = {"a", "b", "c", "bc", "ab", "abc"};
  made.write_merges = false;
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("ab", {})), (Texts{"ab"}));
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("abc", {})), (Texts{"abc"}));
  EXPECT_EQ(texts(*tokenizer, tokenizer->encode("abbc", {})), (Texts{"ab", "bc"}));
  made.tokens.pop_back();
  const auto without = made.load_or_fail();
  EXPECT_EQ(texts(*without, without->encode("abc", {})), (Texts{"a", "bc"}));
}

TEST(BytePair, PlainFamilyWorksOnCharactersAndMarksSpaces) {
  MadeVocabulary made;
  made.model = "gemma4";
  for (const char* text : {"a", "b", "\xE2\x96\x81",
                           "\xE2\x96\x81"
                           "a",
                           "\n", "\n\n", "\xC3\xA9"}) {
    made.add(text);
  }
  made.add("<0xE4>", kByte);
  made.add("<0xB8>", kByte);
  made.add("<0xAD>", kByte);
  made.add("<bos>", kControl);
  made.merges = {"\xE2\x96\x81 a"};
  made.more.add("tokenizer.ggml.bos_token_id", 10U);
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("a b a", {})), (std::vector<std::uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(numbers(tokenizer->encode("\n\n", {})), (std::vector<std::uint32_t>{5}));
  EXPECT_EQ(numbers(tokenizer->encode("\n\n\n", {})), (std::vector<std::uint32_t>{4, 4, 4}));
  EXPECT_EQ(numbers(tokenizer->encode("\xC3\xA9\xE4\xB8\xAD", {})),
            (std::vector<std::uint32_t>{6, 7, 8, 9}));
  EXPECT_EQ(numbers(tokenizer->encode("a", {.add_bos_eos = true})),
            (std::vector<std::uint32_t>{10, 0}));
  EXPECT_EQ(tokenizer->decode(ids({3, 1, 7, 8, 9}), false).value(), " ab\xE4\xB8\xAD");
}

TEST(BytePair, PlainFamilyMergesOverWordsWhereMergesDo) {
  MadeVocabulary made;
  made.model = "gemma4";
  for (const char* text : {"a", "b", "\xE2\x96\x81", "a\xE2\x96\x81",
                           "a\xE2\x96\x81"
                           "b"}) {
    made.add(text);
  }
  made.merges = {"a \xE2\x96\x81", "a\xE2\x96\x81 b"};
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("a b", {})), (std::vector<std::uint32_t>{4}));
}

// Quadratic merging would take hours.
TEST(BytePair, LongRunsFinish) {
  for (const char* name : {"gpt-2", "falcon", "deepseek-llm", "llama-spm"}) {
    const auto tokenizer = load_tokenizer(vocabulary_path(name));
    ASSERT_NE(tokenizer, nullptr);
    for (const char* unit :
         {"a", " ", "\n", "ab", "\xF0\x9F\x98\x80", "7", "=", "<", "\xE4\xB8\xAD"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      const auto tokens = tokenizer->encode(text, {.special = true});
      EXPECT_EQ(tokenizer->decode(tokens, true).value(), text) << name << " '" << unit << "'";
    }
  }
}

}  // namespace
}  // namespace pagoda::text
