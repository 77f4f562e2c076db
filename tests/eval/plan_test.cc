// Which positions are scored, by what text and context hold.
#include "eval/eval_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "gguf/file.h"
#include "test_data.h"

namespace pagoda::eval {
namespace {

using testing::HasSubstr;

std::unique_ptr<text::Tokenizer> story_tokenizer() {
  const auto file = gguf::File::open(test_data() + "/models/stories260K.gguf").value();
  return text::Tokenizer::load(file.metadata()).value();
}

// A text of exactly `tokens` tokens, BOS included.
Document text_of(const text::Tokenizer& tokenizer, std::size_t tokens) {
  Document document = {.name = "text", .text = {}, .digest = "0"};
  while (tokenizer.encode(document.text, {.add_bos_eos = true}).size() < tokens) {
    document.text += " the";
  }
  return document;
}

TEST(EvalPlan, ScoresWhatWasAskedForOrTheLastThirdOfWhatFits) {
  struct Case {
    std::size_t text;
    std::uint64_t context;
    std::uint32_t depth;
    std::uint32_t positions;
    std::uint64_t first;
    std::uint64_t end;
    std::size_t windows;  // of 64 tokens, at most 5
  };
  const auto tokenizer = story_tokenizer();
  for (const Case& c :
       {Case{400, 1000, 256, 100, 256, 356, 5}, Case{356, 1000, 256, 100, 256, 356, 5},
        Case{355, 1000, 256, 100, 255, 355, 5},  // one token short: all 100 of it
        Case{400, 300, 256, 100, 200, 300, 5},   // the context is shorter
        Case{400, 90, 256, 100, 60, 90, 5},      // a third of 90
        Case{130, 1000, 4096, 2000, 87, 130, 2}, Case{60, 1000, 4096, 2000, 40, 60, 0}}) {
    const Document document = text_of(*tokenizer, c.text);
    const auto plan = make_plan({.depth = c.depth,
                                 .positions = c.positions,
                                 .windows_max = 5,
                                 .window_tokens = 64,
                                 .context_tokens = c.context},
                                document, *tokenizer);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan.value().tokens.size(), c.text);
    EXPECT_EQ(plan.value().depth_first, c.first) << c.text << " of " << c.context;
    EXPECT_EQ(plan.value().depth_end, c.end) << c.text << " of " << c.context;
    EXPECT_EQ(plan.value().windows, c.windows) << c.text << " of " << c.context;
  }
}

TEST(EvalPlan, ATextOfTooFewTokensIsRefusedWithItsNumbers) {
  const auto tokenizer = story_tokenizer();
  const auto plan = make_plan({.context_tokens = 1000}, text_of(*tokenizer, 20), *tokenizer);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("text: 20 tokens and a context of 1000"));
}

TEST(EvalPlan, AShorterPlanHasOtherSettings) {
  const auto tokenizer = story_tokenizer();
  const Document document = text_of(*tokenizer, 400);
  EvalPlan plan =
      make_plan({.depth = 256, .positions = 100, .context_tokens = 1000}, document, *tokenizer)
          .value();
  const auto before = plan_settings(plan, document);
  shorten(plan, 500);
  EXPECT_EQ(plan_settings(plan, document), before) << "all of it is read in 500 tokens";
  shorten(plan, 120);
  EXPECT_EQ(plan.depth_end, 120u);
  EXPECT_EQ(plan.depth_first, 80u);
  EXPECT_NE(plan_settings(plan, document), before);
}

}  // namespace
}  // namespace pagoda::eval
