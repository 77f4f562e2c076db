// A limit on tokens changes no token, and text beyond the limit costs nothing.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "counted_allocations.h"
#include "text/random_text.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

class EncodeWithin : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = load_tokenizer(vocabulary_path(GetParam()));
    ASSERT_NE(tokenizer_, nullptr);
  }

  // Tries every limit around the text's own number of tokens.
  void expect_exact(const std::string& text) {
    for (const bool adds : {false, true}) {
      const EncodeOptions options = {.special = true, .add_bos_eos = adds};
      const std::vector<TokenId> all = tokenizer_->encode(text, options);
      for (std::size_t bound = all.size() - std::min<std::size_t>(all.size(), 3);
           bound <= all.size() + 2; ++bound) {
        const auto within = tokenizer_->encode_within(text, options, bound);
        ASSERT_EQ(within.has_value(), bound >= all.size()) << bound << " of " << all.size();
        if (within) {
          ASSERT_EQ(*within, all);
        }
      }
    }
    const TextRange whole{0, text.size()};
    const TokensWithOffsets encoded =
        tokenizer_->encode_with_offsets_within(text, {&whole, 1}, SIZE_MAX).value();
    const std::size_t count = encoded.ids.size();
    EXPECT_EQ(tokenizer_->encode_with_offsets_within(text, {&whole, 1}, count)->begins,
              encoded.begins);
    if (count > 0) {
      EXPECT_FALSE(
          tokenizer_->encode_with_offsets_within(text, {&whole, 1}, count - 1).has_value());
    }
  }

  // Returns the text of the token that covers the most bytes.
  std::string longest_text() const {
    std::string longest;
    for (std::uint32_t i = 0; i < tokenizer_->size(); ++i) {
      const std::string_view bytes = tokenizer_->bytes_of(TokenId(i));
      if (bytes.size() > longest.size()) longest = bytes;
    }
    return longest;
  }

  TokenizerPointer tokenizer_;
};

TEST_P(EncodeWithin, GivesTheTokensOrNothing) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) expect_exact(random_unicode(random, random() % 60));
  for (int i = 0; i < 200; ++i) {
    std::string junk(random() % 80, '\0');
    for (char& c : junk) c = static_cast<char>(random());
    expect_exact(junk);
  }
  expect_exact("");
}

TEST_P(EncodeWithin, TheLongestTokensFitAsOftenAsTheyMay) {
  const std::string longest = longest_text();
  EXPECT_GE(tokenizer_->token_bytes_max(), longest.size());
  std::string text;
  for (int i = 0; i < 20; ++i) expect_exact(text += longest);
  expect_exact(std::string(1000, ' '));
  std::string marks;
  for (int i = 0; i < 200; ++i) marks += "\xE2\x96\x81";
  expect_exact(marks);
}

TEST_P(EncodeWithin, WhatCannotFitIsNotEncoded) {
  for (const char letter : {' ', 'a', '\n', '1'}) {
    const std::string text(8 << 20, letter);
    const std::uint64_t before = bytes_allocated_so_far();
    EXPECT_FALSE(tokenizer_->encode_within(text, {.special = true}, 100).has_value());
    const TextRange whole{0, text.size()};
    EXPECT_FALSE(tokenizer_->encode_with_offsets_within(text, {&whole, 1}, 100).has_value());
    // Workspaces have some megabytes, whatever the text.
    EXPECT_LT(bytes_allocated_so_far() - before, 8u << 20) << "of '" << letter << "'";
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, EncodeWithin,
                         testing::Values("gpt-2", "falcon", "deepseek-llm", "llama-spm"));

}  // namespace
}  // namespace pagoda::text
