// Tests "retain" in requests and in replies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/retain.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kRetainedPrompt =
    "Once upon a time there was a little girl named Lily who loved to play outside in the park "
    "with her "
    "friend Tom every single day";

Json body_of(const char* prompt, Json retain, const char* salt = nullptr) {
  Json body = {
      {"prompt", prompt}, {"max_tokens", 2}, {"temperature", 0}, {"retain", std::move(retain)}};
  if (salt != nullptr) body["cache_salt"] = salt;
  return body;
}

Json retained(StoryFixture& fixture) { return Json::parse(fixture.get("/cache/retained").body); }

TEST(Retain, IsGrantedInWholeBlocksAndShownUntilItEnds) {
  StoryFixture fixture;
  EXPECT_EQ(retained(fixture)["grants"], Json::array());
  const Json reply =
      fixture.complete(body_of(kRetainedPrompt, {{"seconds", 600}, {"priority", 7}, {"upto", 20}}));
  EXPECT_EQ(
      reply["retain"],
      Json(
          {{"granted", true}, {"tokens", 16}, {"blocks", 1}, {"seconds", 600.0}, {"priority", 7}}));
  const Json seen = retained(fixture);
  EXPECT_EQ(seen["blocks_retained"], 1);
  ASSERT_EQ(seen["grants"].size(), 1u);
  EXPECT_EQ(seen["grants"][0]["tenant"], "public");
  EXPECT_EQ(seen["tenants"], Json::array({{{"tenant", "public"}, {"blocks", 1}}}));
  EXPECT_EQ(seen["grants"][0]["blocks"], 1);
  EXPECT_EQ(seen["grants"][0]["priority"], 7);
  EXPECT_GT(seen["grants"][0]["seconds_left"], 590.0);
  EXPECT_LE(seen["grants"][0]["seconds_left"], 600.0);

  StoryFixture brief;
  brief.complete(body_of(kRetainedPrompt, {{"seconds", 0.001}}));
  while (!retained(brief)["grants"].empty()) {
  }
}

TEST(Retain, OfTheWholePromptIsTheDefault) {
  StoryFixture fixture;
  const Json reply = fixture.complete(body_of(kRetainedPrompt, {{"seconds", 1}}));
  const int tokens = reply["usage"]["prompt_tokens"];
  EXPECT_GT(tokens, 32);
  EXPECT_EQ(reply["retain"]["tokens"], tokens / 16 * 16);
  EXPECT_EQ(reply["retain"]["priority"], 50);
}

TEST(Retain, OfTheSystemMessageEndsWithIt) {
  StoryFixture fixture;
  const Json body = {{"messages",
                      {{{"role", "system"}, {"content", kRetainedPrompt}},
                       {{"role", "user"}, {"content", kRetainedPrompt}}}},
                     {"max_tokens", 2},
                     {"retain", {{"seconds", 5}, {"upto", "system"}}}};
  const Json reply = fixture.ask("/v1/chat/completions", body);
  const int system = reply["usage"]["prompt_tokens_details"]["by_source"]["system"]["tokens"];
  const int kept = reply["retain"]["tokens"];
  EXPECT_LE(kept, system + 16) << "the words of the template before it";
  EXPECT_GE(kept, system - 16);
  const Json none = fixture.ask("/v1/chat/completions",
                                {{"messages", {{{"role", "user"}, {"content", kRetainedPrompt}}}},
                                 {"max_tokens", 2},
                                 {"retain", {{"seconds", 5}, {"upto", "system"}}}});
  EXPECT_EQ(none["retain"], Json({{"granted", false}, {"reason", "there is nothing to retain"}}));
  const HttpReply wrong = fixture.post(
      "/v1/completions", body_of(kRetainedPrompt, {{"seconds", 5}, {"upto", "system"}}));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, testing::HasSubstr("retain.upto"));
}

TEST(Retain, IsToldAtTheEndOfAStream) {
  StoryFixture fixture;
  Json body = body_of(kRetainedPrompt, {{"seconds", 5}});
  body["stream"] = true;
  const std::vector<Json> events = fixture.stream("/v1/completions", body);
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["retain"]["granted"], true);
}

TEST(Retain, BeyondTheBudgetIsRefusedWithTheReasonAndTheAnswerIsGivenAllTheSame) {
  StoryFixture fixture;
  Json reply;
  for (int i = 0; i < 10'000; ++i) {
    const std::string prompt = std::to_string(i) + " " + kRetainedPrompt;
    reply = fixture.complete(body_of(prompt.c_str(), {{"seconds", 600}}, "greedy"));
    if (reply["retain"]["granted"] == false) break;
  }
  ASSERT_EQ(reply["retain"]["granted"], false);
  EXPECT_THAT(reply["retain"]["reason"].get<std::string>(),
              testing::HasSubstr("but the tenant keeps"));
  EXPECT_EQ(reply["usage"]["completion_tokens"], 2);
  const Json seen = retained(fixture);
  EXPECT_LE(seen["blocks_retained"], seen["blocks_per_tenant_max"]);
  EXPECT_EQ(seen["grants"][0]["tenant"], "private");
  const Json other = fixture.complete(body_of(kRetainedPrompt, {{"seconds", 600}}, "modest"));
  EXPECT_EQ(other["retain"]["granted"], true) << "a budget is a tenant's own";
}

TEST(Retain, WithoutABudgetIsRefusedWithTheOptionThatGivesOne) {
  const engine::RetainOutcome refused = {.refused = "nothing is retained: the budget is 0"};
  const auto reason = [&](const std::optional<engine::RetainOutcome>& outcome, const char* option) {
    return retain_json({}, outcome, option)["reason"].get<std::string>();
  };
  EXPECT_EQ(reason(refused, "--retain-budget"),
            "nothing is retained: the budget is 0; --retain-budget gives one");
  EXPECT_EQ(reason(refused, ""), refused.refused) << "there is a budget";
  EXPECT_EQ(reason(std::nullopt, "--retain-budget"), "there is nothing to retain");
  EXPECT_EQ(retain_json({}, engine::RetainOutcome{}, "--retain-budget")["granted"], true);
}

}  // namespace
}  // namespace pagoda::server
