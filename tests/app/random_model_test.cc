#include "app/random_model.h"

#include <gtest/gtest.h>

#include "text/detokenizer.h"

namespace pagoda::app {
namespace {

TEST(RandomModel, HasAShapeAndATokenizerOfItsVocabulary) {
  for (const char* const shape : {"llama-3-8b", "llama-3.2-1b", "qwen3-0.6b", "qwen3-30b-a3b",
                                  "gpt-oss-20b", "deepseek-v2-lite"}) {
    const auto made = RandomModel::make({.shape = shape});
    ASSERT_TRUE(made.ok()) << made.error().message;
    const RandomModel& model = *made.value();
    EXPECT_EQ(model.tokenizer().size(), model.config().vocabulary);
    EXPECT_EQ(model.config().qk_norm == model::QkNormSpan::kHead,
              std::string_view(shape).starts_with("qwen3"));
    EXPECT_EQ(model.weights().type, gguf::TensorType::kBF16);
    // Any text is bytes, whatever the words are.
    const std::string text = "What is a pagoda? \xE5\xA1\x94";
    text::Detokenizer detokenizer(model.tokenizer());
    std::string back;
    for (const TokenId id : model.tokenizer().encode(text, {})) {
      ASSERT_LT(id.value(), model.config().vocabulary);
      back += detokenizer.push(id);
    }
    EXPECT_EQ(back + detokenizer.finish(), text);
  }
}

TEST(RandomModel, NamesWhatThereIsWhenAskedForSomethingElse) {
  EXPECT_EQ(RandomModel::make({.shape = "gpt-9"}).error().message,
            "`random_weights`: no shape 'gpt-9'; there are llama-3-8b, llama-3.2-1b, "
            "qwen3-0.6b, qwen3-30b-a3b, gpt-oss-20b, deepseek-v2-lite");
  EXPECT_EQ(RandomModel::make({.shape = "llama-3-8b", .type = "int3"}).error().message,
            "`weights`: 'int3' is none of bf16, q8_0, q4_0, q4_1, q4_k, q6_k, mxfp4");
}

}  // namespace
}  // namespace pagoda::app
