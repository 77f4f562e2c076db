// What agents send and need, through every API: memory, ids, paths of errors, one prompt.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "server/api/anthropic/messages_reply.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/given_pieces.h"
#include "server/api/ollama/ollama_reply.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/own_paths.h"
#include "server/api/responses/responses_reply.h"
#include "server/api/responses/responses_request.h"
#include "server/story_fixture.h"
#include "test_data.h"

namespace pagoda::server {
namespace {

// A body of many small parts becomes a chat that takes much more memory than the body.
TEST(TranslationMemory, ManySmallPartsAreRefused) {
  Json messages = Json::array();
  Json items = Json::array();
  Json calls = Json::array();
  for (int i = 0; i < 4096; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", ""}});
    items.push_back({{"role", "user"}, {"content", ""}});
    calls.push_back({{"function", {{"name", "f"}, {"arguments", Json::object()}}}});
  }
  const Json anthropic_body = {{"max_tokens", 1}, {"messages", messages}};
  const Json responses_body = {{"input", items}};
  const Json ollama_body = {
      {"messages", Json::array({{{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}}})}};
  ByteBudget enough(64 << 20);
  ByteBudget little(1 << 20);
  const auto translate = [&](ByteBudget& budget) {
    int refused = 0;
    const auto attempt = [&](const auto& translator, const Json& body) {
      ReadingMemory memory(&budget);
      try {
        translator(body, &memory);
      } catch (const ApiError& error) {
        EXPECT_EQ(error.status, 400);
        EXPECT_EQ(error.code, "request_too_large");
        ++refused;
      }
    };
    attempt(anthropic::chat_of_messages, anthropic_body);
    attempt(responses::chat_of_responses, responses_body);
    attempt(ollama::chat_of_chat, ollama_body);
    return refused;
  };
  EXPECT_EQ(translate(enough), 0);
  EXPECT_EQ(translate(little), 3);
}

// What is too large to be repeated is not written out to find that.
TEST(ResponsesRequest, LargeFieldsAreNotRepeated) {
  Json body = {{"input", "hi"}, {"instructions", std::string(100'000, 'x')}};
  body["tools"] = Json::array();
  for (int i = 0; i < 20'000; ++i) body["tools"].push_back({{"type", "web_search"}});
  body["metadata"] = {{"a", "b"}};
  const Json echo = Json::parse("{" + responses::echo_of_responses(body).members + "}");
  EXPECT_EQ(echo["instructions"], nullptr);
  EXPECT_EQ(echo["tools"], Json::array());
  EXPECT_EQ(echo["metadata"], Json({{"a", "b"}}));
}

Json ids_of_results(const char* messages) {
  Json body = {{"messages", Json::parse(messages)}};
  Json ids = Json::array();
  const Json translated = ollama::chat_of_chat(body).body["messages"];
  for (const Json& message : translated) {
    if (message["role"] == "tool") ids.push_back(message.value("tool_call_id", Json(nullptr)));
  }
  return ids;
}

TEST(OllamaRequest, ResultsHaveTheIdsOfTheirCalls) {
  // In order.
  EXPECT_EQ(ids_of_results(R"([{"role": "assistant", "tool_calls": [
      {"function": {"name": "f"}}, {"function": {"name": "g"}}]},
      {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}])"),
            Json::array({"call00000", "call00001"}));
  // By name, whichever comes first.
  EXPECT_EQ(ids_of_results(R"([{"role": "assistant", "tool_calls": [
      {"function": {"name": "f"}}, {"function": {"name": "g"}}]},
      {"role": "tool", "content": "2", "tool_name": "g"},
      {"role": "tool", "content": "1", "tool_name": "f"}])"),
            Json::array({"call00001", "call00000"}));
  // A call that nobody answered is not answered by the results of later ones.
  EXPECT_EQ(ids_of_results(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},
      {"role": "user", "content": "never mind"},
      {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},
      {"role": "tool", "content": "1", "tool_name": "f"}])"),
            Json::array({"call00001"}));
  // Ids that the client has kept.
  EXPECT_EQ(ids_of_results(R"([{"role": "assistant", "tool_calls": [
      {"id": "mine", "function": {"name": "f"}}, {"function": {"name": "f"}}]},
      {"role": "tool", "content": "1", "tool_call_id": "mine"},
      {"role": "tool", "content": "2", "tool_name": "f"}])"),
            Json::array({"mine", "call00000"}));
}

TEST(Ollama, ARequestForNothingLoadsTheModel) {
  StoryFixture fixture;
  const Json generate = fixture.ask("/api/generate", {{"model", "stories"}});
  EXPECT_EQ(generate["done"], true);
  EXPECT_EQ(generate["done_reason"], "load");
  EXPECT_EQ(generate["response"], "");
  EXPECT_EQ(generate["model"], "stories");
  EXPECT_EQ(fixture.ask("/api/generate", {{"model", "stories"}, {"prompt", ""}})["done_reason"],
            "load");
  const Json chat = fixture.ask("/api/chat", {{"model", "stories"}, {"messages", Json::array()}});
  EXPECT_EQ(chat["done_reason"], "load");
  EXPECT_EQ(chat["message"], Json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(fixture.ask("/api/chat", {{"model", "stories"}, {"keep_alive", 0}})["done_reason"],
            "unload");
  EXPECT_EQ(fixture.post("/api/chat", {{"model", "other"}}).status, 404);
}

TEST(Responses, ACallThatIsCutBehindItsNameHasAnObjectAsArguments) {
  std::vector<Piece> pieces = {piece_of(EventKind::kCallBegin, "f")};
  pieces.emplace_back().finish_reason = "length";
  const auto writer = [] { return responses::make_responses_writer({.members = "\"a\":1"}); };
  const Json whole = Json::parse(writer()->whole(given_facts(), joined(pieces)));
  EXPECT_EQ(whole["output"][0]["arguments"], "{}");
  const auto made = writer();
  for (const SentEvent& event : streamed(*made, pieces)) {
    if (event.name == "response.output_item.added") {
      EXPECT_EQ(event.data["item"]["arguments"], "");
    } else if (event.name == "response.function_call_arguments.done") {
      EXPECT_EQ(event.data["arguments"], "{}");
    } else if (event.name == "response.output_item.done") {
      EXPECT_EQ(event.data["item"]["arguments"], "{}");
    }
  }
}

TEST(Messages, ArgumentsThatAreNoObjectAreNotTakenForNone) {
  for (const char* const arguments : {"[1]", "{\"a\": oops", "7"}) {
    std::vector<Piece> pieces = {piece_of(EventKind::kCallBegin, "f"),
                                 piece_of(EventKind::kArguments, arguments)};
    pieces.emplace_back().finish_reason = "tool_calls";
    const Json message =
        Json::parse(anthropic::make_messages_writer()->whole(given_facts(), joined(pieces)));
    EXPECT_EQ(message["content"][0]["input"], Json({{"arguments", arguments}}));
    const Json ollama =
        Json::parse(ollama::make_ollama_writer(true)->whole(given_facts(), joined(pieces)));
    EXPECT_EQ(ollama["message"]["tool_calls"][0]["function"]["arguments"],
              Json({{"arguments", arguments}}));
  }
}

TEST(MessagesRequest, ResultsStandBeforeWordsAndSayThatTheyFailed) {
  const Json chat = anthropic::chat_of_messages(Json::parse(R"({"max_tokens": 1, "messages": [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [
      {"type": "tool_use", "id": "a", "name": "f", "input": {}},
      {"type": "tool_use", "id": "b", "name": "f", "input": {}},
      {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {"role": "user", "content": [
      {"type": "text", "text": "Mind the time."},
      {"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": "no file"},
      {"type": "tool_result", "tool_use_id": "b", "is_error": true,
       "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "disk"}]},
      {"type": "tool_result", "tool_use_id": "c", "is_error": false}]}]})"))
                        .body["messages"];
  ASSERT_EQ(chat.size(), 6U);
  EXPECT_EQ(chat[2]["content"], "Error: no file");
  EXPECT_EQ(chat[3]["content"][0]["text"], "Error: no");
  EXPECT_EQ(chat[3]["content"][1]["text"], "disk");
  EXPECT_EQ(chat[4]["content"], "");
  EXPECT_EQ(chat[5], Json({{"role", "user"}, {"content", "Mind the time."}}));
}

TEST(OwnPaths, AreThoseOfTheBodyThatWasSent) {
  OwnPaths paths;
  paths.messages = {{"system"}, {"messages[0]", {"messages[0].content[1]"}}, {"messages[1]"}};
  paths.tools = {0, 2};
  paths.arguments = "input";
  paths.schema = "input_schema";
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"messages: is bad", "messages: is bad"},
      {"messages[0]: is bad", "system: is bad"},
      {"messages[1].tool_calls[0].function.arguments: is bad",
       "messages[0].content[1].input: is bad"},
      {"messages[1].tool_calls[0].function.name", "messages[0].content[1].name"},
      {"messages[1].tool_calls[7].id", "messages[0].tool_calls[7].id"},
      {"messages[2].content", "messages[1].content"},
      {"messages[9].content", "messages[9].content"},
      {"messages[x]", "messages[x]"},
      {"messages[", "messages["},
      {"messages: chat template: messages[2] is no object",
       "messages: chat template: messages[1] is no object"},
      {"tools[1].function.parameters.properties.a: is bad",
       "tools[2].input_schema.properties.a: is bad"},
      {"tools[0].function.name", "tools[0].name"}};
  for (const auto& [chat, own] : cases) EXPECT_EQ(paths.rename(chat), own);
}

TEST(Responses, ErrorsOfTheChatNameTheClientsItems) {
  StoryFixture fixture;
  const Json body = {
      {"model", "stories"},
      {"instructions", "Be kind."},
      {"input",
       {{{"role", "developer"}, {"content", "Be brief."}},
        {{"role", "user"}, {"content", "go"}},
        {{"type", "function_call"}, {"call_id", "a"}, {"name", "f"}, {"arguments", "{}"}},
        {{"type", "function_call"},
         {"call_id", "b"},
         {"name", "f"},
         {"arguments", std::string((1 << 20) + 1, ' ')}}}}};
  const HttpReply reply = fixture.post("/v1/responses", body);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(Json::parse(reply.body)["error"]["param"], "input[3].arguments") << reply.body;
}

// One conversation with two calls, as the SDK of each API sends it back.
constexpr const char* kSameChat = R"({"messages": [
  {"role": "system", "content": "Be kind."},
  {"role": "user", "content": "How warm is it?"},
  {"role": "assistant", "content": "Let me ask.", "reasoning_content": "I look it up.",
   "tool_calls": [
     {"id": "abcdefgh0", "type": "function", "function": {"name": "get_weather",
      "arguments": "{\"city\": \"Rome\", \"days\": 2}"}},
     {"id": "abcdefgh1", "type": "function", "function": {"name": "get_weather",
      "arguments": "{\"city\": \"Oslo\", \"days\": 1}"}}]},
  {"role": "tool", "tool_call_id": "abcdefgh0", "content": "21"},
  {"role": "tool", "tool_call_id": "abcdefgh1", "content": "4"}],
  "tools": [{"type": "function", "function": {"name": "get_weather", "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "c"},
    "days": {"type": "integer", "description": "d"}}, "required": ["city"]}}}]})";
constexpr const char* kSameMessages = R"({"max_tokens": 1, "system": "Be kind.", "messages": [
  {"role": "user", "content": [{"type": "text", "text": "How warm is it?"}]},
  {"role": "assistant", "content": [
    {"type": "thinking", "thinking": "I look it up.", "signature": "s"},
    {"type": "text", "text": "Let me ask."},
    {"type": "tool_use", "id": "abcdefgh0", "name": "get_weather",
     "input": {"city": "Rome", "days": 2}},
    {"type": "tool_use", "id": "abcdefgh1", "name": "get_weather",
     "input": {"city": "Oslo", "days": 1}}]},
  {"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "abcdefgh0", "content": "21"},
    {"type": "tool_result", "tool_use_id": "abcdefgh1",
     "content": [{"type": "text", "text": "4"}]}]}],
  "tools": [{"name": "get_weather", "description": "The weather.", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "description": "c"},
    "days": {"type": "integer", "description": "d"}}, "required": ["city"]}}]})";
constexpr const char* kSameResponse = R"({"instructions": "Be kind.", "input": [
  {"type": "message", "role": "user", "content": [{"type": "input_text", "text":
   "How warm is it?"}]},
  {"type": "reasoning", "id": "rs_1", "summary": [],
   "content": [{"type": "reasoning_text", "text": "I look it up."}]},
  {"type": "message", "id": "msg_1", "role": "assistant",
   "content": [{"type": "output_text", "text": "Let me ask.", "annotations": []}]},
  {"type": "function_call", "id": "fc_1", "call_id": "abcdefgh0", "name": "get_weather",
   "arguments": "{\"city\": \"Rome\", \"days\": 2}"},
  {"type": "function_call", "id": "fc_2", "call_id": "abcdefgh1", "name": "get_weather",
   "arguments": "{\"city\": \"Oslo\", \"days\": 1}"},
  {"type": "function_call_output", "call_id": "abcdefgh0", "output": "21"},
  {"type": "function_call_output", "call_id": "abcdefgh1", "output": "4"}],
  "tools": [{"type": "function", "name": "get_weather", "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "c"},
    "days": {"type": "integer", "description": "d"}}, "required": ["city"]}}]})";
constexpr const char* kSameOllama = R"({"messages": [
  {"role": "system", "content": "Be kind."},
  {"role": "user", "content": "How warm is it?"},
  {"role": "assistant", "content": "Let me ask.", "thinking": "I look it up.", "tool_calls": [
    {"id": "abcdefgh0", "function": {"name": "get_weather",
     "arguments": {"city": "Rome", "days": 2}}},
    {"id": "abcdefgh1", "function": {"name": "get_weather",
     "arguments": {"city": "Oslo", "days": 1}}}]},
  {"role": "tool", "tool_call_id": "abcdefgh0", "content": "21"},
  {"role": "tool", "tool_call_id": "abcdefgh1", "content": "4"}],
  "tools": [{"type": "function", "function": {"name": "get_weather", "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "c"},
    "days": {"type": "integer", "description": "d"}}, "required": ["city"]}}}]})";

std::string prompt_of(const text::ChatTemplate& chat, const Json& body) {
  text::Conversation conversation;
  conversation.messages = body["messages"];
  conversation.tools = body["tools"];
  conversation.now = 0;
  const auto prompt = chat.render(conversation);
  return prompt.ok() ? std::string(prompt.value().bytes()) : "error: " + prompt.error().message;
}

TEST(Translations, OneConversationIsOnePromptThroughEveryApi) {
  const std::string folder = test_data() + "/chat/templates";
  int templates = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path());
    std::stringstream source;
    source << stream.rdbuf();
    const auto chat = text::ChatTemplate::parse("t", source.str(), {"<s>", "</s>"});
    ASSERT_TRUE(chat.ok()) << entry.path();
    const std::string expected = prompt_of(chat.value(), Json::parse(kSameChat));
    const auto check = [&](const TranslatedChat& translated, const char* api) {
      EXPECT_EQ(prompt_of(chat.value(), translated.body), expected)
          << api << ", " << entry.path().stem();
    };
    check(anthropic::chat_of_messages(Json::parse(kSameMessages)), "messages");
    check(responses::chat_of_responses(Json::parse(kSameResponse)), "responses");
    check(ollama::chat_of_chat(Json::parse(kSameOllama)), "ollama");
    ++templates;
  }
  EXPECT_GT(templates, 50);
}

}  // namespace
}  // namespace pagoda::server
