#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

using Texts = std::vector<std::string>;
const std::string kMark = "\xE2\x96\x81";

MadeVocabulary small_vocabulary() {
  MadeVocabulary made;
  made.model = "llama";
  made.pretokenizer = "default";
  made.add("<unk>", kUnknown);
  made.add("<s>", kControl);
  made.add("</s>", kControl);
  return made;
}

// Follows the definition: the pair whose text has the best score merges, the leftmost of equals
// first.
Texts merge_slowly(const Texts& characters, const std::map<std::string, float>& scores) {
  Texts symbols = characters;
  while (true) {
    std::size_t best = symbols.size();
    float best_score = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = scores.find(symbols[i] + symbols[i + 1]);
      if (found == scores.end()) continue;
      if (best < symbols.size() && found->second <= best_score) continue;
      best = i;
      best_score = found->second;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(SentencePiece, MergesAsTheDefinitionSays) {
  std::mt19937 random(6);
  for (int vocabulary = 0; vocabulary < 40; ++vocabulary) {
    MadeVocabulary made = small_vocabulary();
    std::map<std::string, float> scores;
    Texts known = {"a", "b", "c", kMark};
    for (const std::string& text : known) made.add(text, kNormal, -100);
    while (known.size() < 40) {
      const std::string text = known[random() % known.size()] + known[random() % known.size()];
      // Half of the vocabularies have tokens that cross the end of a word.
      const std::size_t mark = text.find(kMark, text.find_first_not_of(kMark));
      if (text.size() > 16 || (vocabulary % 2 == 0 && mark != std::string::npos)) continue;
      known.push_back(text);
      const float score = -static_cast<float>(random() % 12);  // few values, so that many are equal
      if (scores.emplace(text, score).second) made.add(text, kNormal, score);
    }
    const auto tokenizer = made.load_or_fail();
    ASSERT_NE(tokenizer, nullptr);
    for (int i = 0; i < 50; ++i) {
      std::string text;
      Texts characters = {kMark};
      for (std::size_t n = 1 + random() % (i % 2 == 0 ? 30 : 200); n > 0; --n) {
        const char c = "abc  "[random() % 5];
        text += c;
        characters.push_back(c == ' ' ? kMark : std::string(1, c));
      }
      EXPECT_EQ(texts(*tokenizer, tokenizer->encode(text, {})), merge_slowly(characters, scores));
    }
  }
}

TEST(SentencePiece, ASpaceGoesBeforeTextAtTheStartAndAfterSpecialTokens) {
  MadeVocabulary made = small_vocabulary();
  made.add(kMark);
  made.add("a");
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("a</s>a", {.special = true})),
            (std::vector<std::uint32_t>{3, 4, 2, 3, 4}));
  EXPECT_EQ(numbers(tokenizer->encode("", {})), (std::vector<std::uint32_t>{}));
  EXPECT_EQ(numbers(tokenizer->encode("</s>", {.special = true})), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(tokenizer->decode(ids({1, 3, 4}), false).value(), "a");
  EXPECT_EQ(tokenizer->decode(ids({1, 3, 4}), true).value(), "<s> a");
  EXPECT_EQ(tokenizer->decode(ids({3, 3, 4, 3, 4}), false).value(), " a a");

  made.more.add("tokenizer.ggml.add_space_prefix", false);
  const auto gemma = made.load_or_fail();
  EXPECT_EQ(numbers(gemma->encode("a a", {})), (std::vector<std::uint32_t>{4, 3, 4}));
  EXPECT_EQ(gemma->decode(ids({3, 4}), false).value(), " a");
}

TEST(SentencePiece, UnknownCharactersBecomeBytesAndMissingBytesTheUnknownToken) {
  MadeVocabulary made = small_vocabulary();
  made.add(kMark);
  made.add("<0xC3>", kByte);
  made.add("<0xA9>", kByte);
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("\xC3\xA9", {})), (std::vector<std::uint32_t>{3, 4, 5}));
  EXPECT_EQ(numbers(tokenizer->encode("z", {})), (std::vector<std::uint32_t>{3, 0}));
  EXPECT_EQ(tokenizer->decode(ids({3, 4, 5, 0}), false).value(), "\xC3\xA9");
}

TEST(SentencePiece, UnusedTokensAreUndone) {
  MadeVocabulary made = small_vocabulary();
  made.more.add("tokenizer.ggml.add_space_prefix", false);
  for (const char* text : {"a", "b", "c", "d"}) made.add(text, kNormal, -9);
  made.add("ab", kNormal, -1);    // 7
  made.add("abc", kUnused, -2);   // 8
  made.add("cd", kNormal, -3);    // 9
  made.add("abcd", kUnused, -4);  // 10
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("abc", {})), (std::vector<std::uint32_t>{7, 5}));
  EXPECT_EQ(numbers(tokenizer->encode("abcd", {})), (std::vector<std::uint32_t>{7, 5, 6}));
}

TEST(SentencePiece, TypedTextNeverBecomesAControlToken) {
  MadeVocabulary made = small_vocabulary();
  for (const char* text : {"<", "/", "s", ">", "</", "s>"}) made.add(text, kNormal, -1);
  const auto tokenizer = made.load_or_fail();
  for (const TokenId id : tokenizer->encode("</s>", {})) EXPECT_FALSE(tokenizer->is_control(id));
  EXPECT_EQ(numbers(tokenizer->encode("</s>", {.special = true})), (std::vector<std::uint32_t>{2}));
}

TEST(SentencePiece, OldFilesSpellUserDefinedSpacesWithMarks) {
  MadeVocabulary made = small_vocabulary();
  made.more.add("tokenizer.ggml.add_space_prefix", false);
  made.add(kMark, kNormal, -1);
  made.add(kMark + kMark, kUserDefined, 0);
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("   ", {})), (std::vector<std::uint32_t>{4, 3}));
  EXPECT_EQ(tokenizer->decode(ids({4, 3}), false).value(), "   ");
}

}  // namespace
}  // namespace pagoda::text
