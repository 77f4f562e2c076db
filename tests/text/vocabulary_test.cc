// Tests a model's token metadata, right and wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

using testing::HasSubstr;

MadeVocabulary good() {
  MadeVocabulary made;
  made.tokens = {"a", "b", "ab"};
  made.merges = {"a b"};
  return made;
}

void expect_error(const MadeVocabulary& made, ErrorCode code, const std::string& message) {
  const auto tokenizer = made.load();
  ASSERT_FALSE(tokenizer.ok()) << message;
  EXPECT_EQ(tokenizer.error().code, code);
  EXPECT_THAT(tokenizer.error().message, HasSubstr(message));
  EXPECT_THAT(tokenizer.error().message, HasSubstr("made.gguf"));
}

bool warns(const Tokenizer& tokenizer, const std::string& part) {
  for (const std::string& warning : tokenizer.warnings()) {
    if (warning.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(Vocabulary, UnsupportedTokenizersAreNamed) {
  for (const char* model : {"bert", "t5", "rwkv", "plamo2", "none", "no_vocab", ""}) {
    MadeVocabulary made = good();
    made.model = model;
    expect_error(made, ErrorCode::kUnsupported, "tokenizer.ggml.model is '" + std::string(model));
  }
  MadeVocabulary made = good();
  made.model = "evil\x1B[2J";
  expect_error(made, ErrorCode::kUnsupported, "evil\\x1b");
}

TEST(Vocabulary, MissingPartsAreErrors) {
  MadeVocabulary made = good();
  made.tokens.clear();
  expect_error(made, ErrorCode::kNotFound, "tokenizer.ggml.tokens");
  made.more.add_array<std::string>("tokenizer.ggml.tokens", {});
  expect_error(made, ErrorCode::kCorrupt, "0 entries");
  made = good();
  made.write_merges = false;
  expect_error(made, ErrorCode::kNotFound, "tokenizer.ggml.merges");
  gguf::GgufWriter nothing;
  const auto bytes = nothing.bytes();
  const auto file = gguf::File::parse(bytes, "made.gguf");
  EXPECT_FALSE(Tokenizer::load(file.value().metadata()).ok());
}

TEST(Vocabulary, WrongTypesAreErrors) {
  MadeVocabulary made;
  made.more.add("tokenizer.ggml.tokens", 5U);
  expect_error(made, ErrorCode::kCorrupt, "tokenizer.ggml.tokens");
  made = good();
  made.more.add("tokenizer.ggml.bos_token_id", "zero");
  expect_error(made, ErrorCode::kCorrupt, "tokenizer.ggml.bos_token_id");
  made = good();
  made.more.add("tokenizer.ggml.add_bos_token", 1U);
  expect_error(made, ErrorCode::kCorrupt, "tokenizer.ggml.add_bos_token");
}

TEST(Vocabulary, ListsOfDifferentLengthsAreErrors) {
  MadeVocabulary made = good();
  made.types = {1, 1};
  expect_error(made, ErrorCode::kCorrupt, "token_type has 2 entries for 3 tokens");
  made.types = {1, 1, 1, 1};
  expect_error(made, ErrorCode::kCorrupt, "token_type has 4 entries for 3 tokens");
  made.types = {};
  made.model = "llama";
  made.scores = {0, 1};
  expect_error(made, ErrorCode::kCorrupt, "scores has 2 entries for 3 tokens");
}

TEST(Vocabulary, ValuesThatMakeNoSenseAreErrors) {
  MadeVocabulary made = good();
  made.types = {1, 7, 1};
  expect_error(made, ErrorCode::kCorrupt, "token_type[1] is 7");
  made.types = {1, -1, 1};
  expect_error(made, ErrorCode::kCorrupt, "token_type[1] is -1");
  made = good();
  made.model = "llama";
  made.scores = {0, std::nanf(""), 0};
  expect_error(made, ErrorCode::kCorrupt, "scores[1] is not a number");
}

TEST(Vocabulary, MergesThatDoNotParseAreErrors) {
  for (const char* merge : {"", "ab", " ", "a ", " a", "\n"}) {
    MadeVocabulary made = good();
    made.merges.emplace_back(merge);
    expect_error(made, ErrorCode::kCorrupt, "tokenizer.ggml.merges[1]");
  }
}

TEST(Vocabulary, MergesOfUnknownPiecesDoNoHarm) {
  MadeVocabulary made = good();
  made.merges = {"q r", "x a", "\xE4\xB8\xAD b", "a b", "a b", "ab \xFF"};
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("ab", {})), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(numbers(tokenizer->encode("qrxab", {})), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Vocabulary, EmptyAndRepeatedTextsAreTolerated) {
  MadeVocabulary made = good();
  made.tokens = {"", "a", "b", "ab", "ab", "", "a"};
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(numbers(tokenizer->encode("aba", {})), (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(tokenizer->decode(ids({0, 4, 5, 6}), true).value(), "aba");
  EXPECT_TRUE(warns(*tokenizer, "2 tokens have the text of an earlier one"));
  EXPECT_TRUE(warns(*tokenizer, "2 tokens have no text"));
}

TEST(Vocabulary, IdsOutsideTheVocabularyAreIgnoredWithAWarning) {
  MadeVocabulary made = good();
  made.more.add("tokenizer.ggml.bos_token_id", 3U);
  made.more.add("tokenizer.ggml.eos_token_id", 4'000'000'000U);
  made.more.add("tokenizer.ggml.eot_token_id", 99U);
  made.more.add("tokenizer.ggml.add_bos_token", true);
  const auto tokenizer = made.load_or_fail();
  EXPECT_FALSE(tokenizer->bos().has_value());
  EXPECT_FALSE(tokenizer->eos().has_value());
  EXPECT_FALSE(tokenizer->add_bos());
  EXPECT_TRUE(warns(*tokenizer, "bos_token_id is 3, but there are 3 tokens"));
  EXPECT_TRUE(warns(*tokenizer, "eot_token_id is 99"));
  EXPECT_TRUE(warns(*tokenizer, "BOS should be added"));
  EXPECT_EQ(numbers(tokenizer->encode("ab", {.add_bos_eos = true})),
            (std::vector<std::uint32_t>{2}));
}

TEST(Vocabulary, DecodingUnknownIdsIsAnError) {
  const auto tokenizer = good().load_or_fail();
  const auto text = tokenizer->decode(ids({0, 3}), false);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kOutOfRange);
  EXPECT_THAT(text.error().message, HasSubstr("token id 3"));
  EXPECT_EQ(tokenizer->bytes_of(TokenId(3)), "");
  EXPECT_EQ(tokenizer->text_of(TokenId(UINT32_MAX)), "");
  EXPECT_FALSE(tokenizer->is_control(TokenId(3)));
  EXPECT_FALSE(tokenizer->ends_generation(TokenId(3)));
}

TEST(Vocabulary, AnUnknownPretokenizerIsWarnedOfByName) {
  MadeVocabulary made = good();
  EXPECT_FALSE(warns(*made.load_or_fail(), "tokenizer.ggml.pre"));
  made.pretokenizer = "brand-new";
  EXPECT_TRUE(warns(*made.load_or_fail(), "tokenizer.ggml.pre is 'brand-new', which is unknown"));
  made.pretokenizer = "";
  EXPECT_TRUE(warns(*made.load_or_fail(), "tokenizer.ggml.pre is missing"));
  made.pretokenizer = "default";
  EXPECT_FALSE(warns(*made.load_or_fail(), "tokenizer.ggml.pre"));
}

TEST(Vocabulary, AVocabularyWithoutPlainLettersIsWarnedOf) {
  EXPECT_TRUE(warns(*good().load_or_fail(), "cannot write 94 of the 96 ASCII characters"));
}

TEST(Vocabulary, BosAndEosAreAddedAsTheFileOrElseTheFamilySays) {
  const std::vector<std::uint32_t> bare = {2};
  const std::vector<std::uint32_t> with_bos = {0, 2};
  const std::vector<std::uint32_t> with_both = {0, 2, 1};
  const auto encode = [](const MadeVocabulary& made) {
    return numbers(made.load_or_fail()->encode("ab", {.add_bos_eos = true}));
  };
  MadeVocabulary made = good();
  made.more.add("tokenizer.ggml.bos_token_id", 0U);
  made.more.add("tokenizer.ggml.eos_token_id", 1U);
  MadeVocabulary asks = made;
  asks.more.add("tokenizer.ggml.add_bos_token", true);
  asks.more.add("tokenizer.ggml.add_eos_token", true);
  MadeVocabulary refuses = made;
  refuses.more.add("tokenizer.ggml.add_bos_token", false);
  for (const char* family : {"gpt-2", "llama-bpe", "tekken", "qwen2"}) {
    made.pretokenizer = asks.pretokenizer = refuses.pretokenizer = family;
    const std::string_view name = family;
    EXPECT_EQ(encode(made), name == "llama-bpe" || name == "tekken" ? with_bos : bare) << family;
    EXPECT_EQ(encode(asks), with_both) << family;
    EXPECT_EQ(encode(refuses), bare) << family;
    EXPECT_EQ(numbers(asks.load_or_fail()->encode("ab", {})), bare);
  }
}

TEST(Vocabulary, SentencePieceHasBosOneAndEosTwoUnlessTheFileSaysElse) {
  MadeVocabulary made;
  made.model = "llama";
  for (const char* text : {"<unk>", "<s>", "</s>", "\xE2\x96\x81", "a"}) made.add(text);
  made.types = {kUnknown, kControl, kControl, kNormal, kNormal};
  const auto tokenizer = made.load_or_fail();
  EXPECT_EQ(tokenizer->bos(), TokenId(1));
  EXPECT_EQ(tokenizer->eos(), TokenId(2));
  EXPECT_TRUE(tokenizer->ends_generation(TokenId(2)));
  EXPECT_EQ(numbers(tokenizer->encode("a", {.add_bos_eos = true})),
            (std::vector<std::uint32_t>{1, 3, 4}));
  MadeVocabulary tiny;
  tiny.model = "llama";
  tiny.add("a");
  EXPECT_FALSE(tiny.load_or_fail()->bos().has_value());
  made.scores.clear();
  EXPECT_TRUE(warns(*made.load_or_fail(), "no tokenizer.ggml.scores"));
}

std::vector<std::string> ends(std::vector<std::string> special) {
  MadeVocabulary made = good();
  made.types = {kNormal, kNormal, kNormal};
  made.scores.resize(3);
  for (const std::string& text : special) made.add(text, kControl);
  const auto tokenizer = made.load_or_fail();
  std::vector<std::string> found;
  for (const TokenId id : tokenizer->end_tokens()) {
    EXPECT_TRUE(tokenizer->ends_generation(id));
    found.emplace_back(tokenizer->text_of(id));
  }
  return found;
}

TEST(Vocabulary, TokensThatEndAGenerationAreKnownByText) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(ends({"<|im_start|>", "<|im_end|>", "<|endoftext|>"}),
            (Texts{"<|im_end|>", "<|endoftext|>"}));
  EXPECT_EQ(ends({"<|begin_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}),
            (Texts{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}));
  EXPECT_EQ(ends({"<|assistant|>", "<|end|>"}), (Texts{"<|end|>"}));
  EXPECT_EQ(ends({"<|start|>", "<|end|>", "<|return|>", "<|call|>"}),
            (Texts{"<|return|>", "<|call|>"}));
  EXPECT_EQ(ends({"</s>", "<turn|>", "<|tool_response>"}), (Texts{"<turn|>", "<|tool_response>"}));
}

TEST(Vocabulary, TokensThatEndAGenerationAreKnownByKey) {
  MadeVocabulary made = good();
  made.more.add("tokenizer.ggml.eos_token_id", 0U);
  made.more.add("tokenizer.ggml.eot_token_id", 1U);
  const auto tokenizer = made.load_or_fail();
  EXPECT_TRUE(tokenizer->ends_generation(TokenId(0)));
  EXPECT_TRUE(tokenizer->ends_generation(TokenId(1)));
  EXPECT_FALSE(tokenizer->ends_generation(TokenId(2)));
  // A base model may end on a letter, which stays a normal token.
  EXPECT_EQ(numbers(tokenizer->encode("b", {})), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(tokenizer->decode(ids({0}), false).value(), "a");
}

TEST(Vocabulary, AnEndTokenThatIsNotMarkedAsControlBecomesOne) {
  MadeVocabulary made = good();
  made.tokens.push_back("<|im_end|>");
  const auto tokenizer = made.load_or_fail();
  EXPECT_TRUE(tokenizer->is_control(TokenId(3)));
  EXPECT_TRUE(warns(*tokenizer, "token 3 '<|im_end|>' ends a generation"));
  EXPECT_EQ(numbers(tokenizer->encode("<|im_end|>", {.special = true})),
            (std::vector<std::uint32_t>{3}));
}

TEST(Vocabulary, AControlTokenIsNeverTheUnknownToken) {
  MadeVocabulary made = good();
  made.types = {kNormal, kNormal, kNormal};
  made.scores.resize(3);
  made.add("<|endoftext|>", kControl);
  made.more.add("tokenizer.ggml.unknown_token_id", 3U);
  EXPECT_TRUE(made.load_or_fail()->encode("z", {}).empty());
}

}  // namespace
}  // namespace pagoda::text
