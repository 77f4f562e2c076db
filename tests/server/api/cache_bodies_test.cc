// What /cache/explain, /cache/prefetch and /cache/demote take: the bodies of every API, and the
// names of sessions that completions take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSystemText = "Lily and Tom went to the park and played with a red ball.";

struct BodyCase {
  const char* path;
  Json body;
};

// Each has a prompt that a reader of another API would take for another one, or refuse.
std::vector<BodyCase> bodies_of_all_apis() {
  const Json question = {{"role", "user"}, {"content", "Who is Tom?"}};
  const Json tool = {{"name", "look"}, {"input_schema", {{"type", "object"}}}};
  const Json call = {
      {"type", "tool_use"}, {"id", "a"}, {"name", "look"}, {"input", Json::object()}};
  const Json result = {{"type", "tool_result"}, {"tool_use_id", "a"}, {"content", "a boy"}};
  const auto message = [&](Json more) {
    Json body = {{"model", "stories"}, {"max_tokens", 2}, {"temperature", 0}};
    body["messages"] = Json::array({question});
    body.update(more);
    return body;
  };
  return {{"/v1/chat/completions", message(Json::object())},
          {"/v1/completions", {{"prompt", kSystemText}, {"max_tokens", 2}}},
          {"/v1/messages", message({{"system", kSystemText}})},
          {"/v1/messages",
           message({{"system", Json::array({{{"type", "text"}, {"text", kSystemText}}})}})},
          {"/v1/messages", message({{"tools", Json::array({tool})}})},
          {"/v1/messages",
           message({{"tools", Json::array({tool})},
                    {"messages",
                     Json::array({question,
                                  {{"role", "assistant"}, {"content", Json::array({call})}},
                                  {{"role", "user"}, {"content", Json::array({result})}}})}})},
          {"/v1/responses",
           {{"instructions", kSystemText}, {"input", "Who is Tom?"}, {"max_output_tokens", 2}}},
          {"/v1/responses",
           {{"input", Json::array({{{"type", "message"}, {"role", "user"}, {"content", "Who?"}}})},
            {"max_output_tokens", 2}}}};
}

int prompt_tokens_of(const Json& usage) {
  if (usage.contains("prompt_tokens")) return usage["prompt_tokens"];
  const int input = usage["input_tokens"];
  if (!usage.contains("cache_read_input_tokens")) return input;
  return input + usage["cache_read_input_tokens"].get<int>() +
         usage["cache_creation_input_tokens"].get<int>();
}

TEST(CacheBodies, OfEveryApiAreReadAsTheirApiReadsThem) {
  for (const BodyCase& one : bodies_of_all_apis()) {
    StoryFixture fixture;
    const int prompt = prompt_tokens_of(fixture.ask(one.path, one.body)["usage"]);
    const std::string about = one.path + one.body.dump();
    const Json explained = fixture.ask("/cache/explain", one.body);
    EXPECT_EQ(explained["prompt_tokens"], prompt) << about;
    EXPECT_EQ(explained["matched_tokens"], prompt - 1) << about;
    const Json estimate = fixture.ask("/v1/kv/estimate", one.body);
    EXPECT_EQ(estimate["cached_tokens_by_tier"], Json({{"memory", prompt - 1}})) << about;
    EXPECT_EQ(estimate["tokens_to_compute"], 1) << about;
    EXPECT_EQ(estimate["missing"], explained) << about;
    for (const char* const path : {"/cache/prefetch", "/cache/demote"}) {
      const Json reply = fixture.ask(path, one.body);
      EXPECT_EQ(reply["prompt_tokens"], prompt) << path << about;
      EXPECT_EQ(reply["cached_tokens"], prompt - 1) << path << about;
    }
  }
}

TEST(CacheBodies, ErrorsNameTheFieldOfTheClientsApi) {
  StoryFixture fixture;
  const HttpReply reply =
      fixture.post("/cache/prefetch", {{"instructions", "Be brief."}, {"input", 7}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("input: "));
  EXPECT_THAT(fixture.post("/cache/prefetch", Json::object()).body, HasSubstr("prompt"));
}

// A prefill: chats end an assistant's message that stands last, and messages go on with it.
Json prefilled(const Json& more = Json::object()) {
  Json body = Json::parse(R"({"max_tokens": 2, "messages": [
      {"role": "user", "content": "Who is Tom?"}, {"role": "assistant", "content": "Tom is"}]})");
  body.update(more);
  return body;
}

TEST(CacheBodies, OfMessagesAreKnownByTheirHeaderTheirMembersOrByName) {
  StoryFixture fixture;
  const int prompt = prompt_tokens_of(fixture.ask("/v1/messages", prefilled())["usage"]);
  const int ended = prompt_tokens_of(fixture.ask("/v1/chat/completions", prefilled())["usage"]);
  ASSERT_NE(prompt, ended);
  const auto tokens = [&](const char* path, const Json& body, const char* version = "") {
    HttpRequest request = {
        .method = "POST", .path = path, .content_type = "application/json", .body = body.dump()};
    request.anthropic_version = version;
    return Json::parse(fixture.send(request).body)["prompt_tokens"];
  };
  for (const char* const path : {"/cache/explain", "/cache/prefetch", "/cache/demote"}) {
    EXPECT_EQ(tokens(path, prefilled()), ended) << "nothing tells it from a chat";
    EXPECT_EQ(tokens(path, prefilled(), "2023-06-01"), prompt);
    EXPECT_EQ(tokens(path, prefilled({{"api", "messages"}})), prompt);
    EXPECT_EQ(tokens(path, prefilled({{"api", "/v1/messages"}})), prompt);
    EXPECT_EQ(tokens(path, prefilled({{"api", "chat/completions"}}), "2023-06-01"), ended);
    Json ollama = prefilled({{"api", "/api/chat"}});
    ollama.erase("max_tokens");
    EXPECT_EQ(tokens(path, ollama), prompt) << "which goes on, too";
    for (const char* const sign :
         {R"({"stop_sequences": ["x"]})",
          R"({"thinking": {"type": "enabled", "budget_tokens": 9}})",
          R"({"output_config": {"effort": "low"}})", R"({"metadata": {"user_id": "u"}})"}) {
      EXPECT_EQ(tokens(path, prefilled(Json::parse(sign))), prompt) << sign;
    }
    for (const char* const sign :
         {R"({"thinking": {"type": "enabled"}})", R"({"metadata": {"user": "u"}})",
          R"({"metadata": {"user_id": "u"}, "response_format": {"type": "text"}})"}) {
      EXPECT_EQ(tokens(path, prefilled(Json::parse(sign))), ended) << sign;
    }
    const HttpReply refused = fixture.post(path, prefilled({{"api", "smoke"}}));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("api: is \\\"smoke\\\", expected"));
  }
}

TEST(CacheBodies, NameSessionsAsCompletionsDo) {
  for (const char* const name : {"session", "session_id", "prompt_cache_key", "header"}) {
    StoryFixture fixture;
    const Json chat = {{"messages", Json::array({{{"role", "user"}, {"content", kSystemText}}})},
                       {"max_tokens", 2},
                       {"prompt_cache_key", "agent"}};
    const int prompt = prompt_tokens_of(fixture.ask("/v1/chat/completions", chat)["usage"]);
    const bool in_header = std::string(name) == "header";
    const auto post = [&](const char* path, const char* key) {
      HttpRequest request = {.method = "POST", .path = path, .content_type = "application/json"};
      request.body = in_header ? "{}" : Json({{name, key}}).dump();
      if (in_header) request.session = key;
      return fixture.send(request);
    };
    const HttpReply fetched = post("/cache/prefetch", "agent");
    ASSERT_EQ(fetched.status, 200) << name << fetched.body;
    EXPECT_EQ(Json::parse(fetched.body)["prompt_tokens"], prompt) << name;
    EXPECT_EQ(post("/cache/demote", "nobody").status, 404) << name;
    const HttpReply demoted = post("/cache/demote", "agent");
    ASSERT_EQ(demoted.status, 200) << name << demoted.body;
    EXPECT_EQ(Json::parse(demoted.body)["closed"], true) << name;
    EXPECT_EQ(post("/cache/session/close", "agent").status, 404) << name;
  }
}

}  // namespace
}  // namespace pagoda::server
