// Anthropic's API: bodies become chats, answers become content blocks and events.
#include <gtest/gtest.h>

#include "server/api/anthropic/messages_reply.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/given_pieces.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kMessagesPath = "/v1/messages";

Json message_body(const Json& messages) {
  return {{"model", "stories"}, {"max_tokens", 8}, {"temperature", 0}, {"messages", messages}};
}

Json message_question() {
  return message_body(Json::array({{{"role", "user"}, {"content", "Tell me of Tom."}}}));
}

TEST(MessagesRequest, BecomesAChat) {
  const Json body = Json::parse(R"({
    "model": "m", "max_tokens": 9, "stop_sequences": ["END"], "top_k": 3, "stream": true,
    "metadata": {"user_id": "u"}, "thinking": {"type": "enabled", "budget_tokens": 1024},
    "system": [{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}},
               {"type": "text", "text": "B"}],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}},
              {"type": "web_search_20250305", "name": "web_search"}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
    "messages": [
      {"role": "user", "content": "hi"},
      {"role": "user", "content": [{"type": "text", "text": "there"}]},
      {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "whatever"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "I ask."},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": 2}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "is_error": false,
         "content": [{"type": "text", "text": "21"}]},
        {"type": "text", "text": "go on"}]}]})");
  const Json chat = Json::parse(R"({
    "top_k": 3, "stream": true,
    "messages": [
      {"role": "system", "content": [
        {"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "B"}]},
      {"role": "user",
       "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
      {"role": "assistant", "content": "I ask.", "reasoning_content": "hm", "tool_calls": [
        {"id": "t1", "type": "function",
         "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}]},
      {"role": "tool", "tool_call_id": "t1", "content": "21"},
      {"role": "user", "content": "go on"}],
    "tools": [{"type": "function", "function":
               {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
    "parallel_tool_calls": false, "tool_choice": "auto", "stop": ["END"],
    "thinking": {"type": "enabled", "budget_tokens": 1024}})");
  const TranslatedChat translated = anthropic::chat_of_messages(body);
  EXPECT_EQ(translated.body, chat) << translated.body.dump(1);
  EXPECT_EQ(translated.tokens_max, 9U);
}

// Clients mark their last tool, which may be one that runs on the provider's servers.
TEST(MessagesRequest, AMarkOfAToolThatIsLeftOutStandsBehindTheOthers) {
  Json body = message_question();
  body["tools"] = Json::parse(R"([
    {"name": "f", "input_schema": {"type": "object"}}, {"name": "g", "input_schema": {}},
    {"type": "web_search_20250305", "name": "w",
     "cache_control": {"type": "ephemeral", "ttl": "1h"}}])");
  const Json tools = anthropic::chat_of_messages(body).body["tools"];
  ASSERT_EQ(tools.size(), 2U);
  EXPECT_FALSE(tools[0].contains("cache_control"));
  EXPECT_EQ(tools[1]["cache_control"], Json::parse(R"({"type": "ephemeral", "ttl": "1h"})"));
}

// Chats decide whether they can be obeyed.
TEST(MessagesRequest, ToolChoicesAndFormatsAreThoseOfChats) {
  Json body = message_question();
  body["tool_choice"] = {{"type", "any"}};
  EXPECT_EQ(anthropic::chat_of_messages(body).body["tool_choice"], "required");
  body["tool_choice"] = {{"type", "tool"}, {"name", "f"}};
  EXPECT_EQ(anthropic::chat_of_messages(body).body["tool_choice"],
            Json::parse(R"({"type": "function", "function": {"name": "f"}})"));
  body["output_config"] = Json::parse(
      R"({"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}})");
  const Json chat = anthropic::chat_of_messages(body).body;
  EXPECT_EQ(chat["reasoning_effort"], "low");
  EXPECT_EQ(chat["response_format"]["type"], "json_schema");
  EXPECT_EQ(chat["response_format"]["json_schema"]["schema"], Json::parse(R"({"type": "object"})"));
}

TEST(MessagesRequest, AnAnswerGoesOnFromTheAssistantsLastWords) {
  const Json messages =
      Json::parse(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])");
  EXPECT_EQ(anthropic::chat_of_messages(message_body(messages)).body["continue_final_message"],
            true);
  EXPECT_FALSE(
      anthropic::chat_of_messages(message_question()).body.contains("continue_final_message"));
}

constexpr BadBody kBadMessages[] = {
    {R"({"max_tokens": null})", "max_tokens"},
    {R"({"max_tokens": -1})", "max_tokens"},
    {R"({"cache_control": {"ttl": "5m"}})", "cache_control.type"},
    {R"({"cache_control": {"type": "ephemeral", "ttl": 5}})", "cache_control.ttl"},
    {R"({"system": [{"type": "text", "text": "a", "cache_control": {"type": "forever"}}]})",
     "system[0].cache_control.type"},
    {R"({"tools": [{"name": "f", "input_schema": {}, "cache_control": 7}]})",
     "tools[0].cache_control"},
    {R"({"tools": [{"type": "web_search_20250305", "name": "w", "cache_control": 7}]})",
     "tools[0].cache_control"},
    {R"({"max_tokens": "8"})", "max_tokens"},
    {R"({"messages": null})", "messages"},
    {R"({"messages": {}})", "messages"},
    {R"({"messages": []})", "messages"},
    {R"({"messages": [7]})", "messages[0]"},
    {R"({"messages": [{"content": "a"}]})", "messages[0].role"},
    {R"({"messages": [{"role": "tool", "content": "a"}]})", "messages[0].role"},
    {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
    {R"({"messages": [{"role": "user", "content": 7}]})", "messages[0].content"},
    {R"({"messages": [{"role": "user", "content": [7]}]})", "messages[0].content[0]"},
    {R"({"messages": [{"role": "user", "content": [{"text": "a"}]}]})",
     "messages[0].content[0].type"},
    {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
     "messages[0].content[0].text"},
    {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
         {"type": "image", "source": {"type": "base64", "data": ""}}]}]})",
     "messages[0].content[1].type"},
    {R"({"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "f",
         "input": {}}]}]})",
     "messages[0].content[0].type"},
    {R"({"messages": [{"role": "user", "content":
         [{"type": "tool_result", "tool_use_id": "a"}]}]})",
     "messages[0].content[0].tool_use_id"},
    {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f",
         "input": "{}"}]}]})",
     "messages[0].content[0].input"},
    {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f",
         "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
         "content": [{"type": "image"}]}]}]})",
     "messages[1].content[0].content[0].type"},
    {R"({"messages": [{"role": "assistant", "content": [{"type": "thinking"}]}]})",
     "messages[0].content[0].thinking"},
    {R"({"system": 7})", "system"},
    {R"({"system": [{"type": "image"}]})", "system[0].type"},
    {R"({"tools": {}})", "tools"},
    {R"({"tools": [7]})", "tools[0]"},
    {R"({"tools": [{"input_schema": {}}]})", "tools[0].name"},
    {R"({"tools": [{"name": "f"}]})", "tools[0].input_schema"},
    {R"({"tools": [{"name": "f", "input_schema": []}]})", "tools[0].input_schema"},
    {R"({"tool_choice": "auto"})", "tool_choice"},
    {R"({"tool_choice": {}})", "tool_choice.type"},
    {R"({"tool_choice": {"type": "some"}})", "tool_choice.type"},
    {R"({"tool_choice": {"type": "tool"}})", "tool_choice.name"},
    {R"({"stop_sequences": "a"})", "stop_sequences"},
    {R"({"stop_sequences": [7]})", "stop_sequences[0]"},
    {R"({"stop_sequences": [""]})", "stop_sequences"},
    {R"({"temperature": "hot"})", "temperature"},
    {R"({"top_k": 1.5})", "top_k"},
    {R"({"thinking": {}})", "thinking.type"},
    {R"({"output_config": {"effort": 7}})", "output_config.effort"},
    {R"({"output_config": {"format": {"type": "yaml"}}})", "output_config.format.type"},
    {R"({"stream": "yes"})", "stream"},
    {R"({"cache_salt": ""})", "cache_salt"},
};

TEST(Messages, ErrorsNameThePathInAnthropicsEnvelope) {
  StoryFixture fixture;
  for (const BadBody& bad : kBadMessages) {
    Json body = message_question();
    body.update(Json::parse(bad.change));
    const HttpReply reply = fixture.post(kMessagesPath, body);
    EXPECT_EQ(reply.status, 400) << bad.change;
    const Json error = Json::parse(reply.body);
    EXPECT_EQ(error["type"], "error");
    EXPECT_EQ(error["error"]["type"], "invalid_request_error");
    EXPECT_EQ(error["error"]["param"], bad.param) << reply.body;
    const std::string message = error["error"]["message"];
    EXPECT_TRUE(message.starts_with(std::string(bad.param) + ":")) << message;
  }
}

TEST(Messages, OtherErrorsHaveTheirTypes) {
  StoryFixture fixture;
  Json body = message_question();
  body["model"] = "claude";
  const auto type_of = [](const HttpReply& reply) {
    return Json::parse(reply.body)["error"]["type"];
  };
  const HttpReply unknown = fixture.post(kMessagesPath, body);
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(type_of(unknown), "not_found_error");
  EXPECT_EQ(fixture.get(kMessagesPath).status, 405);
  EXPECT_EQ(type_of(fixture.get(kMessagesPath)), "invalid_request_error");
  EXPECT_EQ(type_of(fixture.post_text("/v1/messages/count_tokens", "{")), "invalid_request_error");
  fixture.state().advance(Phase::kDraining);
  EXPECT_EQ(type_of(fixture.post(kMessagesPath, message_question())), "overloaded_error");
}

// The chat that says the same is computed by the same code: its tokens and text are the oracle.
TEST(Messages, AnswersAndCountsAreThoseOfTheSameChat) {
  StoryFixture fixture;
  Json body = message_question();
  body["system"] = "You tell stories.";
  const Json chat =
      fixture.ask("/v1/chat/completions", {{"max_tokens", 8},
                                           {"temperature", 0},
                                           {"messages",
                                            {{{"role", "system"}, {"content", "You tell stories."}},
                                             {{"role", "user"}, {"content", "Tell me of Tom."}}}}});
  const Json reply = fixture.ask(kMessagesPath, body);
  EXPECT_EQ(reply["type"], "message");
  EXPECT_EQ(reply["role"], "assistant");
  EXPECT_EQ(reply["content"],
            Json::array({{{"type", "text"}, {"text", chat["choices"][0]["message"]["content"]}}}));
  EXPECT_EQ(reply["stop_reason"], "max_tokens");
  const std::uint64_t prompt = chat["usage"]["prompt_tokens"];
  const Json& usage = reply["usage"];
  EXPECT_GT(usage["cache_read_input_tokens"], 0);
  EXPECT_EQ(usage["input_tokens"].get<std::uint64_t>() +
                usage["cache_read_input_tokens"].get<std::uint64_t>(),
            prompt);
  EXPECT_EQ(usage["output_tokens"], 8);
  body.erase("max_tokens");
  EXPECT_EQ(fixture.ask("/v1/messages/count_tokens", body), Json({{"input_tokens", prompt}}));
}

TEST(Messages, AStreamSaysWhatTheWholeReplySays) {
  StoryFixture fixture;
  const Json whole = fixture.ask(kMessagesPath, message_question());
  Json body = message_question();
  body["stream"] = true;
  const std::vector<SentEvent> events = read_events(fixture.post(kMessagesPath, body).body);
  EXPECT_EQ(names_of(events),
            "message_start ping content_block_start content_block_delta content_block_stop "
            "message_delta message_stop");
  std::string text;
  for (const SentEvent& event : events) {
    if (event.name == "content_block_delta") text += event.data["delta"]["text"];
  }
  EXPECT_EQ(text, whole["content"][0]["text"].get<std::string>());
  const Json& start = events.front().data["message"];
  // Known when the first token comes.
  EXPECT_GT(start["usage"]["cache_read_input_tokens"], 0);
  EXPECT_EQ(start["content"], Json::array());
  const Json& end = events[events.size() - 2].data;
  EXPECT_EQ(end["delta"]["stop_reason"], "max_tokens");
  EXPECT_EQ(end["usage"]["output_tokens"], 8);
  EXPECT_EQ(end["usage"]["cache_read_input_tokens"], start["usage"]["cache_read_input_tokens"]);
}

TEST(Messages, AStopSequenceIsNamed) {
  StoryFixture fixture;
  Json body = message_question();
  body["max_tokens"] = 64;
  const std::string text = fixture.ask(kMessagesPath, body)["content"][0]["text"];
  const std::string stop = text.substr(text.size() / 2, 3);
  body["stop_sequences"] = {stop};
  const Json reply = fixture.ask(kMessagesPath, body);
  EXPECT_EQ(reply["stop_reason"], "stop_sequence");
  EXPECT_EQ(reply["stop_sequence"], stop);
  EXPECT_EQ(reply["content"][0]["text"], text.substr(0, text.find(stop)));
}

// Clients name max_tokens without knowing the context.
TEST(Messages, AnAnswerEndsWhereTheContextDoes) {
  StoryFixture fixture;
  Json body = message_question();
  body["max_tokens"] = 1'000'000;
  body["ignore_eos"] = true;
  const Json reply = fixture.ask(kMessagesPath, body);
  EXPECT_EQ(reply["stop_reason"], "max_tokens");
  const std::uint64_t context = fixture.served().context_tokens();
  const Json counted = fixture.ask("/v1/messages/count_tokens", message_question());
  EXPECT_EQ(counted["input_tokens"].get<std::uint64_t>() +
                reply["usage"]["output_tokens"].get<std::uint64_t>(),
            context);
}

TEST(Messages, AToolThatMustBeUsedIsUsed) {
  StoryFixture fixture;
  for (const char* const choice : {R"({"type": "any", "disable_parallel_tool_use": true})",
                                   R"({"type": "tool", "name": "f"})"}) {
    Json body = message_question();
    body["max_tokens"] = 100;
    body["tools"] = Json::parse(
        R"([{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"enum": [1, 2]}},
             "required": ["a"]}}])");
    body["tool_choice"] = Json::parse(choice);
    const Json reply = fixture.ask(kMessagesPath, body);
    EXPECT_EQ(reply["stop_reason"], "tool_use");
    const Json& used = reply["content"][0];
    EXPECT_EQ(used["type"], "tool_use");
    EXPECT_EQ(used["name"], "f");
    EXPECT_TRUE(used["input"]["a"] == 1 || used["input"]["a"] == 2) << reply.dump();
  }
}

TEST(Messages, BetaQueriesAreTaken) {
  StoryFixture fixture;
  EXPECT_EQ(fixture
                .send({.method = "POST",
                       .path = kMessagesPath,
                       .query = "beta=true",
                       .content_type = "application/json",
                       .body = message_question().dump()})
                .status,
            200);
}

TEST(MessagesReply, WholeRepliesHaveBlocks) {
  const Json reply = Json::parse(
      anthropic::make_messages_writer()->whole(given_facts(), joined(answer_with_calls())));
  EXPECT_EQ(reply["stop_reason"], "tool_use");
  const Json& content = reply["content"];
  ASSERT_EQ(content.size(), 4U);
  EXPECT_EQ(content[0]["type"], "thinking");
  EXPECT_EQ(content[0]["thinking"], "Hmm \"so\".");
  EXPECT_FALSE(content[0]["signature"].get<std::string>().empty());
  EXPECT_EQ(content[1], Json::parse(R"({"type": "text", "text": "Let me see."})"));
  EXPECT_EQ(content[2], Json::parse(R"({"type": "tool_use", "id": "call_0", "name": "get_weather",
                                        "input": {"city": "Rome"}})"));
  EXPECT_EQ(content[3]["input"], Json::object());
  EXPECT_EQ(reply["usage"]["input_tokens"], 6);
  EXPECT_EQ(reply["usage"]["cache_read_input_tokens"], 4);
  EXPECT_EQ(reply["usage"]["output_tokens"], 3);
}

TEST(MessagesReply, AStopSequenceBehindCallsIsNotTheReason) {
  std::vector<Piece> pieces = answer_with_calls();
  pieces.back().stop_reason = "###";
  const auto writer = anthropic::make_messages_writer();
  const Json reply = Json::parse(writer->whole(given_facts(), joined(pieces)));
  EXPECT_EQ(reply["stop_reason"], "tool_use");
  EXPECT_EQ(reply["stop_sequence"], nullptr);
  const std::vector<SentEvent> events = streamed(*writer, pieces);
  EXPECT_EQ(events[events.size() - 2].data["delta"]["stop_sequence"], nullptr);
  pieces.back().finish_reason = "stop";
  EXPECT_EQ(Json::parse(writer->whole(given_facts(), joined(pieces)))["stop_sequence"], "###");
}

TEST(MessagesReply, ACallThatIsCutOffKeepsItsText) {
  std::vector<Piece> pieces = {piece_of(EventKind::kCallBegin, "f"),
                               piece_of(EventKind::kArguments, "{\"ci")};
  pieces.emplace_back().finish_reason = "length";
  const Json reply =
      Json::parse(anthropic::make_messages_writer()->whole(given_facts(), joined(pieces)));
  EXPECT_EQ(reply["stop_reason"], "max_tokens");
  EXPECT_EQ(reply["content"][0]["input"], Json::object());
  EXPECT_EQ(reply["content"][0]["partial_json"], "{\"ci");
}

TEST(MessagesReply, StreamsOpenAndCloseEachBlock) {
  const auto writer = anthropic::make_messages_writer();
  const std::vector<SentEvent> events = streamed(*writer, answer_with_calls());
  constexpr const char* kBlock = " content_block_start content_block_delta content_block_stop";
  std::string names = "message_start ping";
  for (int i = 0; i < 4; ++i) names += kBlock;
  EXPECT_EQ(names_of(events), names + " message_delta message_stop");
  std::vector<Json> blocks;
  std::vector<std::string> texts;
  for (const SentEvent& event : events) {
    if (event.name == "content_block_start") {
      EXPECT_EQ(event.data["index"], blocks.size());
      blocks.push_back(event.data["content_block"]);
      texts.emplace_back();
    } else if (event.name == "content_block_delta") {
      EXPECT_EQ(event.data["index"], blocks.size() - 1);
      for (const char* const name : {"text", "partial_json", "thinking"}) {
        texts.back() += event.data["delta"].value(name, "");
      }
    }
  }
  EXPECT_EQ(texts,
            (std::vector<std::string>{"Hmm \"so\".", "Let me see.", "{\"city\": \"Rome\"}", "{}"}));
  EXPECT_EQ(blocks[0]["thinking"], "");
  EXPECT_EQ(blocks[1], Json::parse(R"({"type": "text", "text": ""})"));
  EXPECT_EQ(blocks[2], Json::parse(R"({"type": "tool_use", "id": "call_0", "name": "get_weather",
                                       "input": {}})"));
  EXPECT_EQ(events[events.size() - 2].data["delta"]["stop_reason"], "tool_use");
}

TEST(MessagesReply, AFailureIsAnErrorEvent) {
  const auto writer = anthropic::make_messages_writer();
  std::string out;
  writer->begin(given_facts(), out);
  out.clear();
  writer->fail(given_facts(), ApiError(503, "gone", {}, "device_lost"), out);
  const std::vector<SentEvent> events = read_events(out);
  ASSERT_EQ(names_of(events), "error");
  EXPECT_EQ(events[0].data["error"]["type"], "overloaded_error");
  EXPECT_EQ(events[0].data["error"]["message"], "gone");
}

}  // namespace
}  // namespace pagoda::server
