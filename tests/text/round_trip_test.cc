// Decoding what was encoded gives the text back, whatever the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "test_data.h"
#include "text/random_text.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

class RoundTrip : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = load_tokenizer(vocabulary_path(GetParam()));
    ASSERT_NE(tokenizer_, nullptr);
    for (int byte = 0; byte < 256; ++byte) {
      const char character = static_cast<char>(byte);
      if (tokenizer_->encode({&character, 1}, {}).empty()) unwritable_ += character;
    }
  }

  // Falcon has no tokens for some bytes, none of which common text has.
  void expect_same(std::string text) {
    std::erase_if(text, [&](char c) { return unwritable_.find(c) != std::string::npos; });
    const auto plain = tokenizer_->encode(text, {});
    EXPECT_EQ(tokenizer_->decode(plain, true).value(), text);
    const auto framed = tokenizer_->encode(text, {.special = false, .add_bos_eos = true});
    EXPECT_EQ(tokenizer_->decode(framed, false).value(), text);
  }

  TokenizerPointer tokenizer_;
  std::string unwritable_;
};

TEST_P(RoundTrip, OnlyBytesWithoutTokensAreLost) {
  const std::string_view name = GetParam();
  const std::size_t lost = name == "falcon" ? 28 : name == "deepseek-llm" ? 13 : 0;
  EXPECT_EQ(unwritable_.size(), lost);
  EXPECT_TRUE(tokenizer_->warnings().empty()) << tokenizer_->warnings().front();
}

TEST_P(RoundTrip, RandomUnicodeComesBack) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) expect_same(random_unicode(random, random() % 60));
}

TEST_P(RoundTrip, BinaryJunkComesBack) {
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) expect_same(random_bytes(random, random() % 60));
  expect_same(random_bytes(random, 100'000));
}

TEST_P(RoundTrip, EveryByteComesBack) {
  for (int byte = 0; byte < 256; ++byte) expect_same(std::string(1, static_cast<char>(byte)));
}

TEST_P(RoundTrip, LeadingSpacesComeBack) {
  for (const char* text : {"", " ", "  ", "   ", " a", "  a", "a ", "\n a"}) expect_same(text);
}

TEST_P(RoundTrip, WikiTextComesBack) {
  expect_same(read_file(test_data() + "/text/wikitext2-test.txt"));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, RoundTrip,
                         testing::Values("gpt-2", "falcon", "deepseek-llm", "llama-spm"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace pagoda::text
