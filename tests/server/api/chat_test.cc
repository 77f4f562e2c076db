// Chat completions through the API: messages through a template, streams with a role.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kChatPath = "/v1/chat/completions";

StoryFixture& chat_fixture() {
  static StoryFixture fixture;
  return fixture;
}

Json chat(Json more = Json::object()) {
  Json body = {{"messages",
                {{{"role", "system"}, {"content", "You tell stories."}},
                 {{"role", "user"}, {"content", "Tell me of Tom."}}}},
               {"temperature", 0},
               {"max_tokens", 12}};
  body.update(more);
  return body;
}

TEST(Chat, ThePromptIsWhatTheTemplateMakesOfTheMessages) {
  const Json rendered = chat_fixture().ask("/v1/chat/completions/render", chat());
  EXPECT_EQ(rendered["prompt"], "system: You tell stories.\nuser: Tell me of Tom.\nassistant:");
  const Json reply = chat_fixture().ask(kChatPath, chat({{"return_token_ids", true}}));
  EXPECT_EQ(reply["prompt_token_ids"], rendered["token_ids"]);
  const Json completed = chat_fixture().complete(
      {{"prompt", rendered["token_ids"]}, {"temperature", 0}, {"max_tokens", 12}});
  EXPECT_EQ(reply["choices"][0]["message"]["content"], completed["choices"][0]["text"]);
  EXPECT_EQ(reply["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(reply["object"], "chat.completion");
}

TEST(Chat, TypedPartsToolsAndPrefillReachTheTemplate) {
  const Json parts = chat_fixture().ask(
      "/v1/chat/completions/render",
      {{"messages",
        {{{"role", "user"},
          {"content",
           {{{"type", "text"}, {"text", "one"}}, {{"type", "text"}, {"text", "two"}}}}}}},
       {"tools",
        {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", Json::object()}}}}}}});
  EXPECT_THAT(parts["prompt"].get<std::string>(), testing::HasSubstr("one"));
  EXPECT_THAT(parts["prompt"].get<std::string>(), testing::HasSubstr("two"));
  EXPECT_THAT(parts["prompt"].get<std::string>(), testing::HasSubstr("tools: 1\n"));
  const Json prefill = chat_fixture().ask("/v1/chat/completions/render",
                                          {{"messages",
                                            {{{"role", "user"}, {"content", "Go on."}},
                                             {{"role", "assistant"}, {"content", "Tom was"}}}},
                                           {"continue_final_message", true}});
  EXPECT_EQ(prefill["prompt"], "user: Go on.\nassistant: Tom was");
}

TEST(Chat, AStreamOpensWithTheRoleAndSaysWhatTheWholeReplySays) {
  const Json whole = chat_fixture().ask(kChatPath, chat({{"logprobs", true}, {"top_logprobs", 2}}));
  const std::vector<Json> events =
      chat_fixture().stream(kChatPath, chat({{"logprobs", true},
                                             {"top_logprobs", 2},
                                             {"stream_options", {{"include_usage", true}}}}));
  ASSERT_EQ(events.size(), 1u + 12u + 1u) << "the role, one chunk a token, the usage";
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events[0]["choices"][0]["delta"]["content"], "");
  std::string text;
  Json content = Json::array();
  for (std::size_t i = 1; i <= 12; ++i) {
    const Json& choice = events[i]["choices"][0];
    EXPECT_FALSE(choice["delta"].contains("role"));
    text += choice["delta"]["content"].get<std::string>();
    for (const Json& entry : choice["logprobs"]["content"]) content.push_back(entry);
  }
  EXPECT_EQ(whole["choices"][0]["message"]["content"], text);
  EXPECT_EQ(content, whole["choices"][0]["logprobs"]["content"]);
  EXPECT_EQ(events[12]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[13]["usage"]["completion_tokens"], 12);
  for (const Json& event : events) EXPECT_EQ(event["id"], events[0]["id"]);
}

TEST(Chat, SeveralChoicesStreamSideBySide) {
  const Json body = chat({{"n", 3}, {"temperature", 1.0}, {"seed", 9}});
  const Json whole = chat_fixture().ask(kChatPath, body);
  std::vector<std::string> texts(3);
  std::vector<int> roles(3);
  for (const Json& event : chat_fixture().stream(kChatPath, body)) {
    const Json& choice = event["choices"][0];
    const std::size_t index = choice["index"];
    texts[index] += choice["delta"].value("content", "");
    roles[index] += choice["delta"].contains("role") ? 1 : 0;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(whole["choices"][i]["message"]["content"], texts[i]);
    EXPECT_EQ(roles[i], 1);
  }
  EXPECT_NE(texts[0], texts[1]);
}

TEST(Chat, EveryPromptTokenHasASource) {
  const Json first = chat_fixture().ask(kChatPath, chat({{"cache_salt", "sources"}}));
  const Json second = chat_fixture().ask(kChatPath, chat({{"cache_salt", "sources"}}));
  for (const Json& reply : {first, second}) {
    const Json usage = reply["usage"];
    const Json details = usage["prompt_tokens_details"];
    std::int64_t tokens = 0;
    std::int64_t cached = 0;
    for (const char* const source : {"system", "user", "assistant", "tool", "template"}) {
      tokens += details["by_source"][source]["tokens"].get<std::int64_t>();
      cached += details["by_source"][source]["cached"].get<std::int64_t>();
    }
    EXPECT_EQ(tokens, usage["prompt_tokens"]);
    EXPECT_EQ(cached, details["cached_tokens"]);
    EXPECT_GT(details["by_source"]["system"]["tokens"], 0);
    EXPECT_GT(details["by_source"]["user"]["tokens"], 0);
    EXPECT_EQ(details["by_source"]["tool"]["tokens"], 0);
  }
  EXPECT_EQ(second["usage"]["prompt_tokens_details"]["cached_tokens"],
            second["usage"]["prompt_tokens"].get<int>() - 1);
}

TEST(Chat, MaxCompletionTokensIsTheNewerName) {
  Json body = chat({{"max_completion_tokens", 3}, {"ignore_eos", true}});
  EXPECT_EQ(chat_fixture().ask(kChatPath, body)["usage"]["completion_tokens"], 3);
  body["max_completion_tokens"] = 100000;
  EXPECT_EQ(Json::parse(chat_fixture().post(kChatPath, body).body)["error"]["param"],
            "max_completion_tokens");
}

TEST(Chat, TopLogprobsWantLogprobs) {
  EXPECT_EQ(chat_fixture().post(kChatPath, chat({{"top_logprobs", 2}})).status, 400);
  const Json reply = chat_fixture().ask(kChatPath, chat({{"logprobs", true}, {"top_logprobs", 3}}));
  for (const Json& entry : reply["choices"][0]["logprobs"]["content"]) {
    ASSERT_EQ(entry["top_logprobs"].size(), 3u);
    EXPECT_EQ(entry["top_logprobs"][0]["token"], entry["token"]) << "greedy takes the best";
    EXPECT_GE(entry["top_logprobs"][0]["logprob"], entry["top_logprobs"][1]["logprob"]);
  }
}

}  // namespace
}  // namespace pagoda::server
