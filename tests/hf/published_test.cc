// Configurations and tokenizers as models are published, but for weights and vocabularies.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "hf/config_keys.h"
#include "hf/test_folder.h"
#include "hf/tokenizer_keys.h"
#include "test_data.h"
#include "text/tokenizer.h"

namespace pagoda::hf {
namespace {

const JsonValue& published() {
  static const JsonValue kRows = JsonValue::parse(read_file(test_data() + "/hf_published.json"));
  return kRows;
}

// tokenizer.json with a vocabulary of bytes.
std::string tokenizer_text(JsonValue tokenizer) {
  JsonValue bytes =
      JsonValue::parse(read_file(test_data() + "/hf_tokenizers/qwen2/tokenizer.json"));
  const bool plain = tokenizer["model"]["byte_fallback"].get<bool>();
  JsonValue vocabulary = JsonValue::object();
  for (const auto& [text, id] : bytes["model"]["vocab"].items()) {
    if (!plain && id < 256) vocabulary[text] = id;
  }
  for (unsigned byte = 0; plain && byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    vocabulary[text] = byte;
  }
  tokenizer["model"]["vocab"] = vocabulary;
  tokenizer["model"]["merges"] = JsonValue::array();
  return tokenizer.dump();
}

TEST(Published, EveryConfigIsTaken) {
  ASSERT_GT(published().size(), 30U);
  for (const JsonValue& row : published()) {
    const auto name = row["name"].get<std::string>();
    gguf::FileBuilder builder(name);
    const auto shape = write_config_keys(row["config"], name + "/config.json", builder);
    EXPECT_TRUE(shape.ok()) << shape.error().message;
  }
}

TEST(Published, EveryTokenizerIsTakenAndCutsAsItSays) {
  for (const JsonValue& row : published()) {
    if (row["tokenizer"].is_null()) continue;
    const auto name = row["name"].get<std::string>();
    const TestFolder folder;
    folder.write("tokenizer.json", tokenizer_text(row["tokenizer"]));
    gguf::FileBuilder builder(folder.path());
    const std::set<std::string> names = list_names(folder.path());
    const JsonValue config = JsonValue::object();
    const Status written = write_tokenizer_keys(
        {folder.path(), names, config, row["tokenizer"]["added_tokens"].size() + 300}, builder);
    ASSERT_TRUE(written.ok()) << name << ": " << written.error().message;
    const gguf::File file = std::move(builder).build();
    const auto tokenizer = text::Tokenizer::load(file.metadata());
    ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.error().message;
    // No special token of the file is text.
    for (const JsonValue& token : row["tokenizer"]["added_tokens"]) {
      if (token["id"] == 262144) continue;
      const auto text = token["content"].get<std::string>();
      const auto ids = tokenizer.value()->encode(text, {.special = true});
      ASSERT_FALSE(ids.empty()) << name;
      EXPECT_EQ(ids.back(), TokenId(token["id"].get<std::uint32_t>())) << name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace pagoda::hf
