// Where a prompt left the cache is told in the client's own request: not in the chat that it was
// translated to, and not behind messages that the server put in front.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLily = "Lily and Tom went to the park and played with a big red ball.";

// One conversation in two versions, whose texts differ in `changed`.
struct Place {
  const char* api;
  Json body;            // with DOG where the versions differ
  const char* path;     // where that stands
  Json message;         // its index in the list of that API
  const char* advice;   // begins with
  const char* to = "";  // where what was joined to it ends
};

Json with_animal(const Json& body, std::string_view animal) {
  std::string text = body.dump();
  for (std::size_t at = 0; (at = text.find("DOG")) != std::string::npos;) {
    text.replace(at, 3, animal);
  }
  return Json::parse(text);
}

std::vector<Place> places() {
  const Json chat = Json::parse(R"([{"role": "user", "content": "Who is Tom?"},
      {"role": "assistant", "content": "A boy."},
      {"role": "user", "content": "Does the DOG run?"}])");
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "look"}}])");
  const Json flat = Json::parse(R"([{"type": "function", "name": "look"}])");
  const Json called = Json::parse(R"([{"role": "user", "content": "Who is Tom?"},
      {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "a", "output": "A DOG runs."}])");
  const Json used = Json::parse(R"([{"role": "user", "content": "Who is Tom?"},
      {"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "A boy."},
        {"type": "text", "text": "Does the DOG run?"}]}])");
  const Json input = Json::parse(R"([{"type": "function", "name": "look", "input_schema": {}}])");
  return {
      {"chat/completions", {{"messages", chat}}, "messages[2]", 2, "messages[2] (user)"},
      {"chat/completions",
       {{"messages", chat}, {"tools", tools}},
       "messages[2]",
       2,
       "messages[2] (user)"},
      {"responses", {{"input", chat}}, "input[2]", 2, "input[2] (user)"},
      {"responses", {{"instructions", kLily}, {"input", chat}}, "input[2]", 2, "input[2] (user)"},
      {"responses",
       {{"instructions", kLily}, {"input", chat}, {"tools", flat}},
       "input[2]",
       2,
       "input[2] (user)"},
      {"responses", {{"input", called}}, "input[2]", 2, "input[2] ("},
      {"responses",
       {{"instructions", "See the DOG."}, {"input", chat}},
       "instructions",
       nullptr,
       "the system prompt"},
      {"responses", {{"input", "Does the DOG run?"}}, "input", nullptr, "input (user)"},
      {"messages", {{"messages", chat}}, "messages[2]", 2, "messages[2] (user)"},
      {"messages", {{"system", kLily}, {"messages", chat}}, "messages[2]", 2, "messages[2] (user)"},
      {"messages",
       {{"system", "See the DOG."}, {"messages", chat}},
       "system",
       nullptr,
       "the system prompt"},
      {"messages",
       {{"system", kLily}, {"messages", used}, {"tools", input}},
       "messages[2]",
       2,
       "messages[2] (user)"},
      {"messages",
       {{"system", kLily}, {"messages", Json::parse(R"([{"role": "user", "content": "Who?"},
            {"role": "user", "content": "Does the DOG run?"}])")}},
       "messages[0]",
       0,
       "messages[0] to messages[1] (user)",
       "messages[1]"},
      {"/api/chat", {{"messages", chat}}, "messages[2]", 2, "messages[2] (user)"},
      {"/api/generate",
       {{"system", kLily}, {"prompt", "Does the DOG run?"}},
       "prompt",
       nullptr,
       "prompt (user)"}};
}

TEST(PromptPosition, IsThatInTheRequestThatTheClientSent) {
  for (const Place& place : places()) {
    StoryFixture fixture;
    const std::string about = place.api + place.body.dump();
    Json asked = with_animal(place.body, "big dog");
    const bool is_ollama = place.api[0] == '/';
    Json limit = {{"max_tokens", 2}};
    if (is_ollama) limit = {{"options", {{"num_predict", 2}}}, {"stream", false}};
    if (std::string_view(place.api) == "responses") limit = {{"max_output_tokens", 2}};
    asked.update(limit);
    const std::string path = is_ollama ? place.api : std::string("/v1/") + place.api;
    fixture.ask(path, asked);
    Json body = with_animal(place.body, "big cat");
    body["api"] = place.api;
    const Json why = fixture.ask("/cache/explain", body);
    EXPECT_EQ(why["reason"], "differs") << about;
    const Json& at = why["stopped_at"];
    EXPECT_EQ(at["path"], place.path) << about;
    EXPECT_EQ(at["message"], place.message) << about;
    EXPECT_EQ(at.contains("path_to") ? at["path_to"] : Json(""), place.to) << about;
    const std::string advice = why["advice"];
    EXPECT_TRUE(advice.starts_with(place.advice)) << about << "\n" << advice;
  }
}

// The text of a tool list is nobody's message, wherever the server puts it.
TEST(PromptPosition, OfToolInstructionsIsNoMessage) {
  StoryFixture fixture;
  const auto body = [](const char* name) {
    Json asked = {{"messages", {{{"role", "user"}, {"content", kLily}}}}, {"max_tokens", 2}};
    asked["tools"] = {{{"type", "function"}, {"function", {{"name", name}}}}};
    return asked;
  };
  fixture.ask("/v1/chat/completions", body("look"));
  const Json why = fixture.ask("/cache/explain", body("read"));
  EXPECT_EQ(why["stopped_at"]["message"], nullptr);
  EXPECT_EQ(why["stopped_at"]["path"], nullptr);
  const std::string advice = why["advice"];
  EXPECT_THAT(advice, HasSubstr("the instructions for tools that the server adds"));
  EXPECT_THAT(advice, Not(HasSubstr("messages[")));
}

TEST(PromptPosition, OfNormalisedLinesIsThatInTheRequest) {
  StoryFixture fixture;
  fixture.set_normalise({.date = true});
  constexpr const char* kDated = "Today's date: 2026-11-17";
  const auto lines = [&](const char* path, const Json& body) {
    return fixture.ask(path, body)["prompt_normalised"]["lines"];
  };
  const Json user = {{"role", "user"}, {"content", kLily}};
  const Json system = {{"role", "system"}, {"content", "Be kind."}};
  const Json dated = {{"role", "system"}, {"content", kDated}};
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "look"}}])");
  const Json chat =
      lines("/v1/chat/completions",
            {{"messages", {system, dated, user}}, {"tools", tools}, {"max_tokens", 2}});
  ASSERT_EQ(chat.size(), 1u);
  EXPECT_EQ(chat[0]["message"], 1);
  EXPECT_EQ(chat[0]["path"], "messages[1]");
  const Json response =
      lines("/v1/responses", {{"input", {user, dated}}, {"max_output_tokens", 2}});
  EXPECT_EQ(response, nullptr) << "no system message with which it begins";
  const Json developer =
      lines("/v1/responses", {{"input", {dated, user}}, {"max_output_tokens", 2}});
  EXPECT_EQ(developer[0]["path"], "input[0]");
  EXPECT_EQ(developer[0]["message"], 0);
  const Json instructed = lines(
      "/v1/responses", {{"instructions", kDated}, {"input", kLily}, {"max_output_tokens", 2}});
  EXPECT_EQ(instructed[0]["path"], "instructions");
  EXPECT_EQ(instructed[0]["message"], nullptr);
}

}  // namespace
}  // namespace pagoda::server
