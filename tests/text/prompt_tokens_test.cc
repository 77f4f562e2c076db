#include "text/prompt_tokens.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "default_model.h"
#include "text/random_text.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

constexpr Origin kFromTemplate{};
constexpr Origin kFromUser{Source::kUser, 1};

// The vocabularies of tests/data: three families of byte-pair encoding and one of sentence piece.
std::vector<std::string> vocabulary_names() {
  return {"gpt-2", "falcon", "deepseek-llm", "llama-spm"};
}

std::vector<std::string> control_texts(const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < tokenizer.size(); ++i) {
    if (tokenizer.is_control(TokenId(i))) texts.emplace_back(tokenizer.text_of(TokenId(i)));
  }
  return texts;
}

// Makes text with control tokens in it, and the author of each byte.
OriginText random_prompt(std::mt19937& random, const std::vector<std::string>& controls,
                         bool client_writes_controls) {
  OriginText prompt;
  for (std::size_t pieces = 1 + random() % 8; pieces > 0; --pieces) {
    const bool client = random() % 2 == 0;
    const bool control = random() % 3 == 0 && (client_writes_controls || !client);
    prompt.append(
        control ? controls[random() % controls.size()] : random_unicode(random, random() % 12),
        client ? kFromUser : kFromTemplate);
  }
  return prompt;
}

TEST(PromptTokens, WhoWroteATextDoesNotChangeItsIds) {
  for (const std::string& name : vocabulary_names()) {
    const auto tokenizer = load_tokenizer(vocabulary_path(name));
    ASSERT_NE(tokenizer, nullptr);
    const auto controls = control_texts(*tokenizer);
    ASSERT_FALSE(controls.empty()) << name;
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
      const OriginText prompt = random_prompt(random, controls, false);
      EXPECT_EQ(tokenise_prompt(prompt, *tokenizer).ids,
                tokenizer->encode(prompt.bytes(), {.special = true}))
          << name << ": " << prompt.bytes();
    }
  }
}

TEST(PromptTokens, ClientsCannotWriteControlTokens) {
  for (const std::string& name : vocabulary_names()) {
    const auto tokenizer = load_tokenizer(vocabulary_path(name));
    ASSERT_NE(tokenizer, nullptr);
    const auto controls = control_texts(*tokenizer);
    std::mt19937 random(4);
    for (int round = 0; round < 300; ++round) {
      const OriginText prompt = random_prompt(random, controls, true);
      const PromptTokens tokens = tokenise_prompt(prompt, *tokenizer);
      ASSERT_EQ(tokens.ids.size(), tokens.origins.size());
      for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
        if (!tokenizer->is_control(tokens.ids[i])) continue;
        EXPECT_EQ(tokens.origins[i], kFromTemplate) << name << ": " << prompt.bytes();
      }
    }
  }
}

TEST(PromptTokens, AControlTokenThatTwoWroteTogetherIsText) {
  MadeVocabulary made;
  for (char c = 'a'; c <= 'e'; ++c) made.add(std::string(1, c));  // 0 to 4
  made.add("abc", kControl);                                      // 5
  made.add("bcd", kUserDefined);                                  // 6
  const auto tokenizer = made.load_or_fail();
  OriginText prompt("a", kFromTemplate);
  prompt.append("bc", kFromUser);
  EXPECT_EQ(numbers(tokenise_prompt(prompt, *tokenizer).ids),
            (std::vector<std::uint32_t>{0, 1, 2}));
  // Text that cannot be the control token may still be another token.
  prompt.append("de", kFromTemplate);
  EXPECT_EQ(numbers(tokenise_prompt(prompt, *tokenizer).ids),
            (std::vector<std::uint32_t>{0, 6, 4}));
}

TEST(PromptTokens, EachTokenBelongsToWhoWroteItsFirstByte) {
  MadeVocabulary made;
  for (char c = 'a'; c <= 'e'; ++c) made.add(std::string(1, c));  // 0 to 4
  made.add("bc");                                                 // 5
  made.add("<s>", kControl);                                      // 6
  made.merges = {"b c"};
  const auto tokenizer = made.load_or_fail();
  OriginText prompt("<s>ab", kFromTemplate);
  prompt.append("cd", kFromUser);
  prompt.append("e", kFromTemplate);
  const PromptTokens tokens = tokenise_prompt(prompt, *tokenizer);
  EXPECT_EQ(numbers(tokens.ids), (std::vector<std::uint32_t>{6, 0, 5, 3, 4}));
  EXPECT_EQ(tokens.origins, (std::vector<Origin>{kFromTemplate, kFromTemplate, kFromTemplate,
                                                 kFromUser, kFromTemplate}));
  const auto counts = tokens.count_by_source();
  EXPECT_EQ(counts[static_cast<std::size_t>(Source::kTemplate)], 4U);
  EXPECT_EQ(counts[static_cast<std::size_t>(Source::kUser)], 1U);
}

TEST(PromptTokens, TokensAreFoundWhereTheirTextIs) {
  for (const std::string& name : vocabulary_names()) {
    const auto tokenizer = load_tokenizer(vocabulary_path(name));
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(6);
    int compared = 0;
    for (int round = 0; round < 300; ++round) {
      const std::string text = random() % 4 == 0 ? random_bytes(random, random() % 30)
                                                 : random_unicode(random, random() % 30);
      const TokensWithOffsets tokens =
          tokenizer->encode_with_offsets_within(text, {}, SIZE_MAX).value();
      ASSERT_EQ(tokens.ids.size(), tokens.begins.size());
      // Some vocabularies lack bytes, which then have no token.
      if (tokenizer->decode(tokens.ids, true).value() != text) continue;
      ++compared;
      for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
        const std::size_t end = i + 1 < tokens.ids.size() ? tokens.begins[i + 1] : text.size();
        ASSERT_LE(tokens.begins[i], end);
        std::string_view bytes = tokenizer->bytes_of(tokens.ids[i]);
        const std::string_view covered =
            std::string_view(text).substr(tokens.begins[i], end - tokens.begins[i]);
        // Sentence piece puts a space before the text.
        if (i == 0 && bytes.size() == covered.size() + 1) bytes.remove_prefix(1);
        ASSERT_EQ(bytes, covered) << name << ", token " << i;
      }
    }
    EXPECT_GT(compared, 150) << name;
  }
}

TEST(PromptTokens, TheSpaceAfterPhiThreeTagsIsNobodys) {
  MadeVocabulary made;
  for (char c = 'a'; c <= 'e'; ++c) made.add(std::string(1, c));
  made.add("<a>", kControl);  // 5
  made.more.add("general.name", "Microsoft Phi-3 mini");
  const auto tokenizer = made.load_or_fail();
  OriginText prompt("<a>\n", kFromTemplate);
  prompt.append("  b", kFromUser);
  const PromptTokens tokens = tokenise_prompt(prompt, *tokenizer);
  EXPECT_EQ(numbers(tokens.ids), (std::vector<std::uint32_t>{5, 1}));
  EXPECT_EQ(tokens.origins, (std::vector<Origin>{kFromTemplate, kFromUser}));
}

TEST(PromptTokens, AnEmptyPromptHasNone) {
  const auto tokenizer = load_tokenizer(vocabulary_path("gpt-2"));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_TRUE(tokenise_prompt(OriginText(), *tokenizer).ids.empty());
}

}  // namespace
}  // namespace pagoda::text
