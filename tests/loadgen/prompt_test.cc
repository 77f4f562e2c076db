#include "loadgen/prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pagoda::loadgen {
namespace {

using Json = nlohmann::json;

Json member(const LoadPrompt& prompt, PromptForm form, const IdRange& ids = {}) {
  return Json::parse("{" + prompt_member(prompt, form, ids) + "}");
}

TEST(PromptTest, IdsAreWithinTheirRangeAndOnePerSymbol) {
  const LoadPrompt prompt = {{.symbols = random_symbols(1, 2, 500)},
                             {.symbols = random_symbols(1, 3, 7)}};
  const Json ids = member(prompt, PromptForm::kIds, {.first = 10, .last = 12})["prompt"];
  ASSERT_EQ(ids.size(), 507U);
  for (const int id : {10, 11, 12}) EXPECT_GT(std::count(ids.begin(), ids.end(), Json(id)), 100);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](int id) { return id < 10 || id > 12; }), 0);
}

TEST(PromptTest, AWordStandsForEachSymbol) {
  const LoadPrompt prompt = {{.symbols = random_symbols(1, 2, 30)},
                             {.symbols = random_symbols(1, 3, 12)}};
  const std::string text = member(prompt, PromptForm::kWords)["prompt"];
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 41);
  EXPECT_TRUE(text.starts_with(words_of(prompt[0].symbols) + " "));
  EXPECT_TRUE(text.ends_with(" " + words_of(prompt[1].symbols)));
}

TEST(PromptTest, EqualSymbolsAreEqualTextAndOthersAreNot) {
  EXPECT_EQ(words_of(random_symbols(4, 9, 50)), words_of(random_symbols(4, 9, 50)));
  EXPECT_NE(words_of(random_symbols(4, 9, 50)), words_of(random_symbols(4, 10, 50)));
  EXPECT_NE(words_of(random_symbols(4, 9, 50)), words_of(random_symbols(5, 9, 50)));
}

TEST(PromptTest, AConversationIsAlternatingMessages) {
  const LoadPrompt prompt = {{.symbols = {1, 2}},
                             {.symbols = {3}},
                             {.symbols = {}, .text = "so \"it\"\n\xff", .from_server = true},
                             {.symbols = {4}}};
  const Json messages = member(prompt, PromptForm::kMessages)["messages"];
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[0]["role"], "user");
  EXPECT_EQ(messages[0]["content"], words_of({1, 2, 3}));
  EXPECT_EQ(messages[1]["role"], "assistant");
  EXPECT_EQ(messages[1]["content"], "so \"it\"\n\xef\xbf\xbd") << "a broken character is replaced";
  EXPECT_EQ(messages[2]["content"], words_of({4}));
}

TEST(PromptTest, TextAsItIsCannotBeIds) {
  EXPECT_EQ(member({{.symbols = {}, .text = "Hello"}}, PromptForm::kIds)["prompt"], "Hello");
}

}  // namespace
}  // namespace pagoda::loadgen
