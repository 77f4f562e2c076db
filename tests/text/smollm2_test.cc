// The default model's tokenizer against ids from Hugging Face `tokenizers`
// (tests/data/make_smollm2_ids.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "default_model.h"
#include "test_data.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

TEST(SmolLm2, IdsAreThoseOfThePublishedTokenizer) {
  REQUIRE_DEFAULT_MODEL();
  const auto tokenizer = load_tokenizer(default_model_path());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_TRUE(tokenizer->warnings().empty());
  const auto fixture = nlohmann::json::parse(read_file(test_data() + "/text/smollm2_ids.json"));
  ASSERT_GT(fixture.size(), 50U);
  for (const auto& entry : fixture) {
    const std::string text = entry["text"];
    EXPECT_EQ(numbers(tokenizer->encode(text, {})), entry["ids"].get<std::vector<std::uint32_t>>())
        << text.substr(0, 80);
  }
}

TEST(SmolLm2, ChatMarkersAreTokensWhenAskedAndEndAGeneration) {
  REQUIRE_DEFAULT_MODEL();
  const auto tokenizer = load_tokenizer(default_model_path());
  ASSERT_NE(tokenizer, nullptr);
  const auto tokens = tokenizer->encode("<|im_start|>user\nHi<|im_end|>\n", {.special = true});
  EXPECT_EQ(numbers(tokens), (std::vector<std::uint32_t>{1, 4093, 198, 26843, 2, 198}));
  EXPECT_TRUE(tokenizer->ends_generation(TokenId(2)));
  EXPECT_FALSE(tokenizer->ends_generation(TokenId(1)));
  EXPECT_FALSE(tokenizer->add_bos());
}

}  // namespace
}  // namespace pagoda::text
