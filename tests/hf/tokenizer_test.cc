// Tokenizers of Hugging Face folders against the ids of the `tokenizers` library.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hf/test_folder.h"
#include "hf/tokenizer_keys.h"
#include "test_data.h"

namespace pagoda::hf {
namespace {

using testing::HasSubstr;

std::string fixture(const std::string& name) { return test_data() + "/hf_tokenizers/" + name; }

Result<gguf::File> describe(const std::string& path,
                            const JsonValue& config = JsonValue::object()) {
  gguf::FileBuilder builder(path);
  const std::set<std::string> names = list_names(path);
  const Status written = write_tokenizer_keys({path, names, config}, builder);
  if (!written.ok()) return written.error();
  return std::move(builder).build();
}

class FolderTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(FolderTokenizer, GivesTheIdsAndTextsOfTheTokenizersLibrary) {
  const std::string path = fixture(GetParam());
  const auto file = describe(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto loaded = text::Tokenizer::load(file.value().metadata());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const text::Tokenizer& tokenizer = *loaded.value();
  const JsonValue rows = JsonValue::parse(read_file(path + "/expected.json"));
  ASSERT_GT(rows.size(), 30U);
  for (const JsonValue& row : rows) {
    const auto text = row["text"].get<std::string>();
    std::vector<std::uint32_t> ids;
    const std::vector<TokenId> tokens =
        tokenizer.encode(text, {.special = true, .add_bos_eos = true});
    for (const TokenId token : tokens) ids.push_back(token.value());
    EXPECT_EQ(ids, row["ids"].get<std::vector<std::uint32_t>>()) << row["text"];
    const auto decoded = tokenizer.decode(tokens, false);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded.value(), row["decoded"].get<std::string>()) << row["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Trained, FolderTokenizer,
                         testing::Values("llama3", "qwen2", "gpt2", "digits", "gpt4o", "gpt_oss",
                                         "deepseek2", "deepseek3", "phi4", "llama2", "gemma",
                                         "metaspace_first", "metaspace_always", "unigram",
                                         "unigram_bytes"),
                         [](const auto& instance) { return std::string(instance.param); });

// A change of a good tokenizer.json, and what its refusal says.
struct BadTokenizer {
  const char* name;
  const char* fixture;
  const char* patch;  // JSON merge patch
  std::vector<const char*> says;
};

class RefusedTokenizer : public testing::TestWithParam<BadTokenizer> {};

TEST_P(RefusedTokenizer, IsNamed) {
  const TestFolder folder;
  JsonValue tokenizer =
      JsonValue::parse(read_file(fixture(GetParam().fixture) + "/tokenizer.json"));
  tokenizer.merge_patch(JsonValue::parse(GetParam().patch));
  folder.write("tokenizer.json", tokenizer.dump());
  const auto file = describe(folder.path());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("tokenizer.json: "));
  for (const char* const part : GetParam().says) {
    EXPECT_THAT(file.error().message, HasSubstr(part));
  }
}

const BadTokenizer kBadTokenizers[] = {
    {"WordPiece", "gpt2", R"({"model":{"type":"WordPiece"}})", {"WordPiece", "BPE and Unigram"}},
    {"WordLevel", "gpt2", R"({"model":{"type":"WordLevel"}})", {"WordLevel"}},
    {"UnknownRegex",
     "gpt2",
     R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
     R"({"Regex":"[a-z]+x?"},"behavior":"Isolated","invert":false},)"
     R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}})",
     {"[a-z]+x?", "not known"}},
    {"PrefixSpace",
     "gpt2",
     R"({"pre_tokenizer":{"add_prefix_space":true}})",
     {"add_prefix_space is true"}},
    {"Normalizer", "gpt2", R"({"normalizer":{"type":"Lowercase"}})", {"Lowercase"}},
    {"Charsmap", "unigram", R"({"normalizer":{"type":"Precompiled"}})", {"Precompiled"}},
    {"Whitespace", "gpt2", R"({"pre_tokenizer":{"type":"Whitespace"}})", {"Whitespace"}},
    {"NoBytes", "llama2", R"({"model":{"byte_fallback":false}})", {"byte_fallback"}},
    {"NoMarks", "llama2", R"({"normalizer":null})", {"U+2581"}},
    {"WordEnds", "gpt2", R"({"model":{"end_of_word_suffix":"</w>"}})", {"end_of_word_suffix"}},
    {"NoModel", "gpt2", R"({"model":null})", {"model is missing"}},
    {"NoVocabulary", "gpt2", R"({"model":{"vocab":null}})", {"vocab is missing"}},
    {"NoMerges", "gpt2", R"({"model":{"merges":null,"type":"BPE"}})", {"merges is missing"}},
    {"IdIsText", "gpt2", R"({"model":{"vocab":{"a":"b"}}})", {"token 'a'"}},
    {"IdIsHuge", "gpt2", R"({"model":{"vocab":{"a":4294967296}}})", {"token 'a'", "4294967296"}},
    {"TwoTokensOfOneId", "gpt2", R"({"model":{"vocab":{"zzzz":5}}})", {"id 5 is both"}},
    {"MergeOfOne", "gpt2", R"({"model":{"merges":[["a"]]}})", {"merges[0]"}},
    {"PieceWithoutScore", "unigram", R"({"model":{"vocab":[["a"]]}})", {"vocab[0]"}},
    {"UnknownBeyond", "unigram", R"({"model":{"unk_id":9999}})", {"unk_id is 9999"}},
    {"SingleWord",
     "gpt2",
     R"({"added_tokens":[{"id":420,"content":"<s>","single_word":true}]})",
     {"'<s>'", "single_word"}},
    {"OtherFrame", "gpt2", R"({"post_processor":{"type":"BertProcessing"}})", {"BertProcessing"}},
};

INSTANTIATE_TEST_SUITE_P(Table, RefusedTokenizer, testing::ValuesIn(kBadTokenizers),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(TokenizerKeys, SpecialTokensComeFromTheFilesBesideTheTokenizer) {
  const TestFolder folder;
  folder.write("tokenizer.json", read_file(fixture("qwen2") + "/tokenizer.json"));
  folder.write("special_tokens_map.json", R"({"bos_token":"<|user|>"})");
  folder.write("tokenizer_config.json", R"({"eos_token":{"content":"<|end|>"}})");
  folder.write("generation_config.json",
               R"({"eos_token_id":[3,7],"temperature":0.6,"top_k":20,"top_p":0.95,"min_p":0.1,)"
               R"("repetition_penalty":1.05,"do_sample":true})");
  const auto file = describe(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const gguf::Metadata& metadata = file.value().metadata();
  const auto loaded = text::Tokenizer::load(metadata);
  ASSERT_TRUE(loaded.ok());
  const text::Tokenizer& tokenizer = *loaded.value();
  EXPECT_EQ(tokenizer.text_of(*tokenizer.bos()), "<|user|>");
  EXPECT_EQ(tokenizer.text_of(*tokenizer.eos()), "<|end|>");
  EXPECT_FALSE(tokenizer.add_bos());
  for (const std::uint32_t id : {3U, 7U, tokenizer.eos()->value()}) {
    EXPECT_TRUE(tokenizer.ends_generation(TokenId(id))) << id;
  }
  EXPECT_FALSE(tokenizer.ends_generation(TokenId(4)));
  EXPECT_EQ(metadata.number_or("general.sampling.temp", 0).value(), 0.6);
  EXPECT_EQ(metadata.number_or("general.sampling.top_p", 0).value(), 0.95);
  EXPECT_EQ(metadata.number_or("general.sampling.min_p", 0).value(), 0.1);
  EXPECT_EQ(metadata.number_or("general.sampling.penalty_repeat", 0).value(), 1.05);
  EXPECT_EQ(metadata.number_or("general.sampling.top_k", 0).value(), 20);
  EXPECT_EQ(file.value().opened_parts().size(), 4U);
}

// transformers: greedy unless do_sample is true, and temperature is not looked at then. vLLM does
// not look at do_sample. top_k of -1 is all tokens in vLLM.
TEST(TokenizerKeys, AModelThatIsNotSampledIsGreedy) {
  const struct {
    const char* generation;
    std::optional<double> temperature;
    std::optional<double> top_k = {};
  } cases[] = {{R"({"do_sample":false})", 0.0},
               {R"({"do_sample":false,"temperature":0.6,"top_k":20})", 0.0, 20.0},
               {R"({"do_sample":true,"temperature":0.6})", 0.6},
               {R"({"do_sample":null,"temperature":0.6,"top_k":-1})", 0.6, -1.0},
               {R"({"temperature":0.6})", 0.6},
               {R"({})", std::nullopt}};
  for (const auto& tested : cases) {
    const TestFolder folder;
    folder.write("tokenizer.json", read_file(fixture("qwen2") + "/tokenizer.json"));
    folder.write("generation_config.json", tested.generation);
    const auto file = describe(folder.path());
    ASSERT_TRUE(file.ok()) << file.error().message;
    const gguf::Metadata& metadata = file.value().metadata();
    const auto number = [&](const char* key) -> std::optional<double> {
      if (!metadata.contains(key)) return std::nullopt;
      return metadata.number_or(key, 0).value();
    };
    EXPECT_EQ(number("general.sampling.temp"), tested.temperature) << tested.generation;
    EXPECT_EQ(number("general.sampling.top_k"), tested.top_k) << tested.generation;
  }
}

TEST(TokenizerKeys, NoTextBecomesAnIdThatNoTokenHas) {
  for (const char* const name : {"unigram", "llama2", "llama3"}) {
    const TestFolder folder;
    JsonValue tokenizer = JsonValue::parse(read_file(fixture(name) + "/tokenizer.json"));
    tokenizer["added_tokens"].push_back({{"id", 900}, {"content", "<far>"}, {"special", true}});
    folder.write("tokenizer.json", tokenizer.dump());
    const auto file = describe(folder.path());
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto loaded = text::Tokenizer::load(file.value().metadata());
    ASSERT_TRUE(loaded.ok());
    ASSERT_EQ(loaded.value()->size(), 901U);
    const auto tokens = loaded.value()->encode("[PAD850]<far>", {.special = true});
    EXPECT_EQ(tokens.back(), TokenId(900)) << name;
    for (const TokenId token : tokens) EXPECT_NE(token, TokenId(850)) << name;
  }
}

TEST(TokenizerKeys, AFlagOfLlamasClassTurnsTheFrameOff) {
  for (const bool on : {false, true}) {
    const TestFolder folder;
    folder.write("tokenizer.json", read_file(fixture("llama2") + "/tokenizer.json"));
    folder.write(
        "tokenizer_config.json",
        JsonValue{{"tokenizer_class", "LlamaTokenizerFast"}, {"add_bos_token", on}}.dump());
    const auto file = describe(folder.path());
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file.value().metadata().flag_or("tokenizer.ggml.add_bos_token", !on).value(), on);
  }
}

TEST(TokenizerKeys, ChatTemplatesAreATextAListOrAFileWhichComesFirst) {
  const auto template_of = [](const TestFolder& folder, const char* key) {
    const auto file = describe(folder.path());
    return std::string(file.ok() ? file.value().metadata().text_or(key, "none").value() : "error");
  };
  const TestFolder text;
  text.write("tokenizer_config.json", R"({"chat_template":"one"})");
  EXPECT_EQ(template_of(text, "tokenizer.chat_template"), "one");
  const TestFolder list;
  list.write("tokenizer_config.json", R"({"chat_template":[{"name":"default","template":"two"},)"
                                      R"({"name":"tool_use","template":"three"}]})");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template"), "two");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template.tool_use"), "three");
  list.write("chat_template.json", R"({"chat_template":"four"})");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template"), "four");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template.tool_use"), "none")
      << "templates of two places are not mixed";
  list.write("chat_template.jinja", "five");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template"), "five");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template.tool_use"), "none");
  std::filesystem::create_directory(list.file("additional_chat_templates"));
  list.write("additional_chat_templates/tool_use.jinja", "six");
  list.write("additional_chat_templates/README.md", "seven");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template"), "five");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template.tool_use"), "six");
  EXPECT_EQ(template_of(list, "tokenizer.chat_template.README"), "none");
  for (int i = 0; i < 40; ++i) {
    list.write("additional_chat_templates/" + std::to_string(i) + ".jinja", "x");
  }
  EXPECT_EQ(template_of(list, "tokenizer.chat_template"), "error") << "too many";
}

}  // namespace
}  // namespace pagoda::hf
