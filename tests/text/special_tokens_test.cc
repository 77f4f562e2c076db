#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

MadeVocabulary letters() {
  MadeVocabulary made;
  for (char c = 'a'; c <= 'e'; ++c) made.add(std::string(1, c));  // 0 to 4
  made.add("<");                                                  // 5
  made.add(">");                                                  // 6
  made.add("\xC4\xA0");                                           // 7, a space
  return made;
}

TEST(SpecialTokens, ControlTokensAreReadOnlyWhenAsked) {
  MadeVocabulary made = letters();
  made.add("<a>", kControl);
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("b<a>c", {})), (std::vector<std::uint32_t>{1, 5, 0, 6, 2}));
  EXPECT_EQ(numbers(tokenizer->encode("b<a>c", {.special = true})),
            (std::vector<std::uint32_t>{1, 8, 2}));
  EXPECT_EQ(tokenizer->decode(ids({1, 8, 2}), true).value(), "b<a>c");
  EXPECT_EQ(tokenizer->decode(ids({1, 8, 2}), false).value(), "bc");
  EXPECT_TRUE(tokenizer->is_control(TokenId(8)));
  EXPECT_FALSE(tokenizer->is_control(TokenId(0)));
}

TEST(SpecialTokens, UserDefinedTokensAreReadAlways) {
  MadeVocabulary made = letters();
  made.add("<a>", kUserDefined);
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("b<a>c", {})), (std::vector<std::uint32_t>{1, 8, 2}));
  EXPECT_EQ(tokenizer->decode(ids({1, 8, 2}), false).value(), "b<a>c");
}

TEST(SpecialTokens, TheLongestIsCutFirst) {
  MadeVocabulary made = letters();
  made.add("ab", kUserDefined);    // 8
  made.add("abcd", kUserDefined);  // 9
  made.add("bcde", kUserDefined);  // 10
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("abcde", {})), (std::vector<std::uint32_t>{9, 4}));
  EXPECT_EQ(numbers(tokenizer->encode("abce", {})), (std::vector<std::uint32_t>{8, 2, 4}));
  EXPECT_EQ(numbers(tokenizer->encode("bcdeab", {})), (std::vector<std::uint32_t>{10, 8}));
}

// The white space of Unicode, as tokenizers 0.23 strips it: not the separators of ASCII, nor what
// only looks empty.
TEST(SpecialTokens, TagsSwallowUnicodesWhiteSpaceAfterThem) {
  MadeVocabulary made = letters();
  made.add("<a>", kControl);  // 8
  made.more.add("general.name", "Microsoft Phi-3 mini");
  const auto tokenizer = made.load_or_fail();
  for (const char* const space : {" ", "\t", "\v", "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A",
                                  "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"}) {
    EXPECT_EQ(numbers(tokenizer->encode("<a>" + std::string(space) + " b", {.special = true})),
              (std::vector<std::uint32_t>{8, 1}))
        << testing::PrintToString(space);
  }
  for (const char* const other : {"\x1C", "\u180E", "\u200B", "\u2060", "\uFEFF", "\xC2", "\xA0"}) {
    EXPECT_NE(numbers(tokenizer->encode("<a>" + std::string(other) + " b", {.special = true})),
              (std::vector<std::uint32_t>{8, 1}))
        << testing::PrintToString(other);
  }
}

TEST(SpecialTokens, PhiThreeTagsSwallowTheSpaceAfterThem) {
  MadeVocabulary made = letters();
  made.add("<a>", kControl);            // 8
  made.add("<|endoftext|>", kControl);  // 9
  made.more.add("general.name", "Microsoft Phi-3 mini");
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("b <a> \n\tc", {.special = true})),
            (std::vector<std::uint32_t>{1, 7, 8, 2}));
  EXPECT_EQ(numbers(tokenizer->encode("<|endoftext|> c", {.special = true})),
            (std::vector<std::uint32_t>{9, 7, 2}));
}

// White space between two tags goes to the first that strips it, and no tag takes a character.
TEST(SpecialTokens, TagsThatStripBeforeThemKeepTheirOwnOffsets) {
  MadeVocabulary made = letters();
  made.add("<a>", kControl);  // 8
  made.add("<b>", kControl);  // 9
  made.more.add_array("pagoda.tokenizer.strips_before", std::vector<std::int32_t>{8});
  const auto tokenizer = made.load_or_fail();
  const auto encode = [&](const std::string& text) {
    const TextRange whole{0, text.size()};
    return tokenizer->encode_with_offsets_within(text, {&whole, 1}, SIZE_MAX).value();
  };
  for (const std::string space : {" ", "\n \t", "\u0085", "\u00A0", "\u2003 \u3000"}) {
    const TokensWithOffsets tokens = encode("b" + space + "<a> c");
    EXPECT_EQ(numbers(tokens.ids), (std::vector<std::uint32_t>{1, 8, 7, 2}));
    const std::size_t tag = 1 + space.size();
    EXPECT_EQ(tokens.begins, (std::vector<std::size_t>{0, tag, tag + 3, tag + 4}));
  }
  EXPECT_EQ(numbers(encode("  <a>").ids), (std::vector<std::uint32_t>{8}));
  EXPECT_EQ(numbers(encode("<b> <a> <b>").ids), (std::vector<std::uint32_t>{9, 8, 7, 9}));
  // Text that is not white space, or no text at all, stays.
  EXPECT_EQ(numbers(encode("b \xE2\x80<a>").ids), (std::vector<std::uint32_t>{1, 7, 8}))
      << "bytes without tokens are dropped";
}

TEST(SpecialTokens, ThousandsOfThemInALongTextAreFound) {
  MadeVocabulary made = letters();
  for (int i = 0; i < 20'000; ++i) made.add("<" + std::to_string(i) + ">", kControl);
  const auto tokenizer = made.load_or_fail();
  std::mt19937 random(7);
  std::string text;
  std::vector<std::uint32_t> expected;
  while (text.size() < 1'000'000) {
    const std::uint32_t number = static_cast<std::uint32_t>(random() % 20'000);
    text += "a<" + std::to_string(number) + ">";
    expected.push_back(0);
    expected.push_back(8 + number);
  }
  EXPECT_EQ(numbers(tokenizer->encode(text, {.special = true})), expected);
}

TEST(SpecialTokens, EmptyTextsAreNeverCut) {
  MadeVocabulary made = letters();
  made.add("", kUserDefined);
  made.add("", kControl);
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("ab", {.special = true})),
            (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace pagoda::text
