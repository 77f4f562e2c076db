// OpenAI's Responses API: bodies become chats, answers become output items and events.
#include <gtest/gtest.h>

#include "server/api/given_pieces.h"
#include "server/api/responses/responses_reply.h"
#include "server/api/responses/responses_request.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr const char* kResponsesPath = "/v1/responses";

Json response_question() {
  return {{"model", "stories"},
          {"max_output_tokens", 8},
          {"temperature", 0},
          {"input", "Tell me of Tom."}};
}

// In the shape of what Codex sends.
TEST(ResponsesRequest, BecomesAChat) {
  const Json body = Json::parse(R"({
    "model": "m", "instructions": "A", "stream": true, "store": false, "include": [],
    "prompt_cache_key": "k", "client_metadata": {}, "parallel_tool_calls": false,
    "tool_choice": "auto", "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low", "format": {"type": "text"}},
    "tools": [{"type": "function", "name": "f", "description": "d", "strict": false,
               "parameters": {"type": "object"}},
              {"type": "web_search"}, {"type": "custom", "name": "patch"}],
    "input": [
      {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "B"}]},
      {"role": "user", "content": "hi"},
      {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
       "encrypted_content": null},
      {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
       "content": [{"type": "output_text", "text": "I ask.", "annotations": []}]},
      {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\": 1}"},
      {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c1", "output": "21"},
      {"type": "function_call_output", "call_id": "c2",
       "output": [{"type": "input_text", "text": "22"}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "so"}]},
      {"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c3", "output": []}]})");
  const Json chat = Json::parse(R"({
    "stream": true, "prompt_cache_key": "k",
    "messages": [
      {"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
      {"role": "user", "content": "hi"},
      {"role": "assistant", "content": "I ask.", "reasoning_content": "hm", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "c1", "content": "21"},
      {"role": "tool", "tool_call_id": "c2", "content": "22"},
      {"role": "assistant", "content": null, "reasoning_content": "so", "tool_calls": [
        {"id": "c3", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "c3", "content": ""}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d",
               "parameters": {"type": "object"}, "strict": false}}],
    "parallel_tool_calls": false, "tool_choice": "auto", "reasoning_effort": "high",
    "response_format": {"type": "text"}})");
  const TranslatedChat translated = responses::chat_of_responses(body);
  EXPECT_EQ(translated.body, chat) << translated.body.dump(1);
  EXPECT_TRUE(responses::echo_of_responses(body).shows_summary);
  EXPECT_FALSE(responses::echo_of_responses(response_question()).shows_summary);
}

// Chats decide whether they can be obeyed.
TEST(ResponsesRequest, ToolChoicesAndFormatsAreThoseOfChats) {
  Json body = response_question();
  body["tool_choice"] = {{"type", "function"}, {"name", "f"}};
  body["text"] = Json::parse(
      R"({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"},
                     "strict": true}})");
  const Json chat = responses::chat_of_responses(body).body;
  EXPECT_EQ(chat["tool_choice"], Json::parse(R"({"type": "function", "function": {"name": "f"}})"));
  EXPECT_EQ(chat["response_format"], Json::parse(R"({"type": "json_schema", "json_schema":
      {"name": "n", "strict": true, "schema": {"type": "object"}}})"));
}

constexpr BadBody kBadResponses[] = {
    {R"({"input": null})", "input"},
    {R"({"input": 7})", "input"},
    {R"({"input": []})", "input"},
    {R"({"input": [7]})", "input[0]"},
    {R"({"input": [{"type": 7}]})", "input[0].type"},
    {R"({"input": [{"type": "item_reference", "id": "x"}]})", "input[0].type"},
    {R"({"input": [{"type": "computer_call"}]})", "input[0].type"},
    {R"({"input": [{"content": "a"}]})", "input[0].role"},
    {R"({"input": [{"role": "tool", "content": "a"}]})", "input[0].role"},
    {R"({"input": [{"role": "user"}]})", "input[0].content"},
    {R"({"input": [{"role": "user", "content": 7}]})", "input[0].content"},
    {R"({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"},
         {"type": "input_image", "image_url": ""}]}]})",
     "input[0].content[1].type"},
    {R"({"input": [{"role": "user", "content": [{"type": "input_text"}]}]})",
     "input[0].content[0].text"},
    {R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})",
     "input[0].call_id"},
    {R"({"input": [{"type": "function_call", "call_id": "a", "arguments": "{}"}]})",
     "input[0].name"},
    {R"({"input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}]})",
     "input[0].arguments"},
    {R"({"input": [{"type": "function_call_output", "call_id": "a", "output": "1"}]})",
     "input[0].call_id"},
    {R"({"input": [{"type": "reasoning", "summary": [7]}]})", "input[0].summary[0]"},
    {R"({"input": [{"type": "reasoning", "summary": [{}]}]})", "input[0].summary[0].text"},
    {R"({"instructions": 7})", "instructions"},
    {R"({"previous_response_id": "resp_1"})", "previous_response_id"},
    {R"({"conversation": "conv_1"})", "conversation"},
    {R"({"prompt": {"id": "p"}})", "prompt"},
    {R"({"background": true})", "background"},
    {R"({"store": "yes"})", "store"},
    {R"({"top_logprobs": 2})", "top_logprobs"},
    {R"({"tools": {}})", "tools"},
    {R"({"tools": [7]})", "tools[0]"},
    {R"({"tools": [{"name": "f"}]})", "tools[0].type"},
    {R"({"tools": [{"type": "function"}]})", "tools[0].name"},
    {R"({"tools": [{"type": "function", "name": "f", "parameters": []}]})", "tools[0].parameters"},
    {R"({"tool_choice": 7})", "tool_choice"},
    {R"({"tool_choice": "always"})", "tool_choice"},
    {R"({"tool_choice": {"type": "function"}})", "tool_choice.name"},
    {R"({"reasoning": "high"})", "reasoning"},
    {R"({"reasoning": {"effort": 7}})", "reasoning.effort"},
    {R"({"text": {"format": {}}})", "text.format.type"},
    {R"({"text": {"format": {"type": "json_schema", "name": "n"}}})", "text.format.schema"},
    {R"({"text": {"format": {"type": "yaml"}}})", "text.format.type"},
    {R"({"max_output_tokens": -1})", "max_output_tokens"},
    {R"({"temperature": -1})", "temperature"},
    {R"({"stream": 7})", "stream"},
};

TEST(Responses, ErrorsNameThePath) {
  StoryFixture fixture;
  for (const BadBody& bad : kBadResponses) {
    Json body = response_question();
    body.update(Json::parse(bad.change));
    const HttpReply reply = fixture.post(kResponsesPath, body);
    EXPECT_EQ(reply.status, 400) << bad.change;
    const Json error = Json::parse(reply.body)["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], bad.param) << reply.body;
    const std::string message = error["message"];
    EXPECT_TRUE(message.starts_with(std::string(bad.param) + ":")) << message;
  }
}

TEST(Responses, ALongInputIsCalledInput) {
  StoryFixture fixture;
  Json body = response_question();
  body["input"] = repeated("Tom ", 2000);
  EXPECT_EQ(Json::parse(fixture.post(kResponsesPath, body).body)["error"]["param"], "input");
}

// The chat that says the same is computed by the same code: its tokens and text are the oracle.
TEST(Responses, AnswersAndUsageAreThoseOfTheSameChat) {
  StoryFixture fixture;
  Json body = response_question();
  body["instructions"] = "You tell stories.";
  body["store"] = true;
  body["tools"] = Json::array({{{"type", "web_search"}}});
  const Json chat =
      fixture.ask("/v1/chat/completions", {{"max_tokens", 8},
                                           {"temperature", 0},
                                           {"messages",
                                            {{{"role", "system"}, {"content", "You tell stories."}},
                                             {{"role", "user"}, {"content", "Tell me of Tom."}}}}});
  const Json reply = fixture.ask(kResponsesPath, body);
  EXPECT_EQ(reply["object"], "response");
  EXPECT_EQ(reply["status"], "incomplete");
  EXPECT_EQ(reply["incomplete_details"]["reason"], "max_output_tokens");
  ASSERT_EQ(reply["output"].size(), 1U);
  EXPECT_EQ(reply["output"][0]["type"], "message");
  EXPECT_EQ(reply["output"][0]["status"], "incomplete");
  EXPECT_EQ(reply["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(reply["usage"]["input_tokens"], chat["usage"]["prompt_tokens"]);
  EXPECT_GT(reply["usage"]["input_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(reply["usage"]["output_tokens"], 8);
  EXPECT_EQ(reply["instructions"], "You tell stories.");
  EXPECT_EQ(reply["store"], false) << "nothing is kept";
  EXPECT_EQ(reply["tools"], body["tools"]);
}

TEST(Responses, AStreamSaysWhatTheWholeReplySays) {
  StoryFixture fixture;
  const Json whole = fixture.ask(kResponsesPath, response_question());
  Json body = response_question();
  body["stream"] = true;
  const std::vector<SentEvent> events = read_events(fixture.post(kResponsesPath, body).body);
  EXPECT_EQ(names_of(events),
            "response.created response.in_progress response.output_item.added "
            "response.content_part.added response.output_text.delta response.output_text.done "
            "response.content_part.done response.output_item.done response.incomplete");
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].data["sequence_number"], i);
    if (events[i].name == "response.output_text.delta") text += events[i].data["delta"];
  }
  const Json& last = events.back().data["response"];
  EXPECT_EQ(text, whole["output"][0]["content"][0]["text"].get<std::string>());
  EXPECT_EQ(last["output"][0]["content"], whole["output"][0]["content"]);
  EXPECT_EQ(last["usage"]["output_tokens"], 8);
  EXPECT_EQ(last["id"], events.front().data["response"]["id"]);
}

std::vector<Json> events_named(const std::vector<SentEvent>& events, std::string_view name) {
  std::vector<Json> found;
  for (const SentEvent& event : events) {
    if (event.name == name) found.push_back(event.data);
  }
  return found;
}

TEST(ResponsesReply, StreamsTellOfEachItem) {
  const auto writer = responses::make_responses_writer({.members = R"("tools":[])"});
  const std::vector<SentEvent> events = streamed(*writer, answer_with_calls());
  EXPECT_EQ(names_of(events),
            "response.created response.in_progress "
            "response.output_item.added response.content_part.added response.reasoning_text.delta "
            "response.reasoning_text.done response.content_part.done response.output_item.done "
            "response.output_item.added response.content_part.added response.output_text.delta "
            "response.output_text.done response.content_part.done response.output_item.done "
            "response.output_item.added response.function_call_arguments.delta "
            "response.function_call_arguments.done response.output_item.done "
            "response.output_item.added response.function_call_arguments.delta "
            "response.function_call_arguments.done response.output_item.done response.completed");
  const std::vector<Json> added = events_named(events, "response.output_item.added");
  const std::vector<Json> done = events_named(events, "response.output_item.done");
  ASSERT_EQ(added.size(), 4U);
  ASSERT_EQ(done.size(), 4U);
  for (std::size_t i = 0; i < added.size(); ++i) {
    EXPECT_EQ(added[i]["output_index"], i);
    EXPECT_EQ(added[i]["item"]["status"], "in_progress");
    EXPECT_EQ(added[i]["item"]["id"], done[i]["item"]["id"]);
    EXPECT_EQ(done[i]["item"]["status"], "completed");
  }
  EXPECT_EQ(added[1]["item"]["content"], Json::array());
  EXPECT_EQ(added[2]["item"]["arguments"], "");
  EXPECT_EQ(done[0]["item"]["content"][0]["text"], "Hmm \"so\".");
  EXPECT_EQ(done[1]["item"]["content"][0]["text"], "Let me see.");
  EXPECT_EQ(done[2]["item"]["call_id"], "call_0");
  EXPECT_EQ(done[2]["item"]["name"], "get_weather");
  EXPECT_EQ(done[2]["item"]["arguments"], "{\"city\": \"Rome\"}");
  EXPECT_EQ(done[3]["item"]["arguments"], "{}");
  const Json& response = events.back().data["response"];
  ASSERT_EQ(response["output"].size(), 4U);
  EXPECT_EQ(response["output"][2], done[2]["item"]);
  EXPECT_EQ(response["usage"]["input_tokens"], 10);
  EXPECT_EQ(response["usage"]["input_tokens_details"]["cached_tokens"], 4);
  EXPECT_EQ(response["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  const std::string whole = writer->whole(given_facts(), joined(answer_with_calls()));
  EXPECT_EQ(Json::parse(whole)["output"], response["output"]);
}

TEST(ResponsesReply, WhoAsksForASummaryFindsReasoningThere) {
  const auto writer =
      responses::make_responses_writer({.members = R"("tools":[])", .shows_summary = true});
  const std::vector<SentEvent> events = streamed(*writer, answer_with_calls());
  EXPECT_TRUE(names_of(events).starts_with(
      "response.created response.in_progress response.output_item.added "
      "response.reasoning_summary_part.added response.reasoning_summary_text.delta "
      "response.reasoning_summary_text.done response.reasoning_summary_part.done "
      "response.output_item.done "));
  const Json& item = events.back().data["response"]["output"][0];
  EXPECT_EQ(item["summary"][0]["text"], "Hmm \"so\".");
  EXPECT_FALSE(item.contains("content"));
}

TEST(ResponsesReply, AFailureEndsTheStream) {
  const auto writer = responses::make_responses_writer({.members = R"("tools":[])"});
  std::string out;
  writer->begin(given_facts(), out);
  writer->fail(given_facts(), ApiError(503, "gone", {}, "device_lost"), out);
  const std::vector<SentEvent> events = read_events(out);
  ASSERT_EQ(names_of(events), "response.created response.in_progress response.failed");
  EXPECT_EQ(events[2].data["response"]["status"], "failed");
  EXPECT_EQ(events[2].data["response"]["error"]["code"], "server_error");
  EXPECT_EQ(events[2].data["response"]["error"]["message"], "gone");
}

TEST(ResponsesReply, AFailureClosesTheItemThatIsOpen) {
  const auto writer = responses::make_responses_writer({.members = R"("tools":[])"});
  std::string out;
  writer->begin(given_facts(), out);
  writer->add(piece_of(EventKind::kReasoning, "Hm."), out);
  writer->add(piece_of(EventKind::kContent, "Let me"), out);
  writer->fail(given_facts(), ApiError(400, "nothing is allowed", {}, "no_token_allowed"), out);
  const std::vector<SentEvent> events = read_events(out);
  const std::vector<Json> done = events_named(events, "response.output_item.done");
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0]["item"]["status"], "completed");
  EXPECT_EQ(done[1]["item"]["status"], "incomplete");
  ASSERT_EQ(events.back().name, "response.failed");
  const Json& response = events.back().data["response"];
  EXPECT_EQ(response["output"], Json::array({done[0]["item"], done[1]["item"]}));
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "Let me");
  EXPECT_EQ(response["error"]["code"], "invalid_prompt") << "sent again it would fail again";
}

}  // namespace
}  // namespace pagoda::server
