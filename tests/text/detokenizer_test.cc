#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/random_text.h"
#include "text/utf8.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

// Returns whether a character of `text` has bytes on both sides of `place`. A byte that belongs to
// no character stands alone.
bool cuts_a_character(std::string_view text, std::size_t place) {
  std::size_t at = 0;
  while (at < place) at += std::max<std::size_t>(1, utf8_char_bytes(text.substr(at)));
  return at != place;
}

TEST(Detokenizer, PiecesAddUpToDecodeAndNeverEndInHalfACharacter) {
  std::mt19937 random(8);
  for (const char* name : {"gpt-2", "falcon", "deepseek-llm", "llama-spm"}) {
    const auto tokenizer = load_tokenizer(vocabulary_path(name));
    ASSERT_NE(tokenizer, nullptr);
    for (int i = 0; i < 300; ++i) {
      const bool special = random() % 2 == 0;
      std::vector<TokenId> tokens;
      if (i % 3 == 0) {
        tokens = tokenizer->encode(random_unicode(random, 40), {.add_bos_eos = true});
      } else if (i % 3 == 1) {
        tokens = tokenizer->encode(random_bytes(random, 40), {});
      } else {
        for (int n = 0; n < 40; ++n) tokens.emplace_back(random() % tokenizer->size());
      }
      Detokenizer detokenizer(*tokenizer, {.special = special});
      for (int text = 0; text < 2; ++text) {  // finish() begins a new text
        const std::string whole = tokenizer->decode(tokens, special).value();
        std::string pieces;
        for (const TokenId id : tokens) {
          pieces += detokenizer.push(id);
          EXPECT_FALSE(cuts_a_character(whole, pieces.size())) << name;
        }
        pieces += detokenizer.finish();
        EXPECT_EQ(pieces, whole) << name;
      }
    }
  }
}

TEST(Detokenizer, WellFormedTextComesInWellFormedPieces) {
  std::mt19937 random(9);
  const auto tokenizer = load_tokenizer(vocabulary_path("gpt-2"));
  ASSERT_NE(tokenizer, nullptr);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random_unicode(random, 40);
    Detokenizer detokenizer(*tokenizer);
    for (const TokenId id : tokenizer->encode(text, {})) {
      const std::string piece = detokenizer.push(id);
      EXPECT_EQ(utf8_valid_prefix(piece), piece.size());
    }
    EXPECT_EQ(detokenizer.finish(), "");
  }
}

TEST(Detokenizer, ACharacterIsHeldBackUntilItIsWhole) {
  const auto tokenizer = load_tokenizer(vocabulary_path("llama-spm"));
  ASSERT_NE(tokenizer, nullptr);
  const auto byte = [](unsigned value) { return TokenId(3 + value); };  // <0x00> is token 3
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(byte(0xF0)), "");
  EXPECT_EQ(detokenizer.push(byte(0x9F)), "");
  EXPECT_EQ(detokenizer.push(byte(0x98)), "");
  EXPECT_EQ(detokenizer.push(byte(0x80)), "\xF0\x9F\x98\x80");
  EXPECT_EQ(detokenizer.push(byte(0xE2)), "");
  EXPECT_EQ(detokenizer.push(byte('A')),
            "\xE2"
            "A");  // never completed
  EXPECT_EQ(detokenizer.push(byte(0xC3)), "");
  EXPECT_EQ(detokenizer.finish(), "\xC3");
  EXPECT_EQ(detokenizer.push(byte(0xA9)), "\xA9");
}

TEST(Detokenizer, TheLeadingSpaceIsDroppedOnlyWhereATextBegins) {
  const auto tokenizer = load_tokenizer(vocabulary_path("llama-spm"));
  ASSERT_NE(tokenizer, nullptr);
  const auto tokens = tokenizer->encode("Hello world", {});
  Detokenizer begins(*tokenizer);
  EXPECT_EQ(begins.push(TokenId(1)), "");
  EXPECT_EQ(begins.push(tokens[0]), "Hello");
  EXPECT_EQ(begins.push(tokens[1]), " world");
  Detokenizer continues(*tokenizer, {.continues = true});
  EXPECT_EQ(continues.push(tokens[0]), " Hello");
}

TEST(Detokenizer, IdsOutsideTheVocabularyStandForNothing) {
  const auto tokenizer = load_tokenizer(vocabulary_path("gpt-2"));
  ASSERT_NE(tokenizer, nullptr);
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(TokenId(UINT32_MAX)), "");
  EXPECT_EQ(detokenizer.push(tokenizer->encode("x", {})[0]), "x");
}

}  // namespace
}  // namespace pagoda::text
