// How a chat's answer with reasoning and tool calls appears in replies and streams.
#include <gtest/gtest.h>

#include "chat/known_forms.h"
#include "server/api/choice_text.h"
#include "server/api/completion_format.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

const Json kWeather = Json::parse(R"([{"type": "function", "function": {"name": "get_weather",
  "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}])");

// One choice whose tokens are given, as the engine would send them.
class GivenAnswer {
 public:
  explicit GivenAnswer(StoryFixture& fixture, bool single_call = false,
                       std::vector<std::string> stops = {})
      : fixture_(fixture) {
    request_.output.stops = text::StopStrings::make(std::move(stops)).value();
    form_.found.form.calls = chat::find_tool_form("hermes")->calls;
    form_.found.form.reasoning = chat::find_reasoning_form("qwen3")->reasoning;
    auto terms = std::make_shared<AnswerTerms>();
    terms->form = &form_;
    terms->schemas = chat::ToolSchemas(kWeather);
    terms->options.single_call = single_call;
    request_.is_chat = true;
    request_.answer = terms;
    format_ = make_chat_format(request_, fixture.tokenizer());
    text_ = std::make_unique<ChoiceText>(fixture.tokenizer(), request_, false);
  }

  // The pieces of an answer that ends by itself, or at a length.
  std::vector<Piece> pieces(const std::string& answer,
                            engine::FinishReason reason = engine::FinishReason::kStop) {
    std::vector<Piece> all;
    for (const TokenId id : fixture_.tokenizer().encode(answer, {})) {
      if (text_->ended()) return all;
      all.push_back(text_->push({id, false, {}}));
    }
    if (!text_->ended()) all.push_back(text_->finish(reason));
    return all;
  }

  Json whole(const std::string& answer, engine::FinishReason reason = engine::FinishReason::kStop) {
    Piece all;
    for (Piece& piece : pieces(answer, reason)) all.append(std::move(piece));
    return format_->whole(state_, all);
  }

  std::uint64_t tokens() const { return text_->tokens(); }
  std::uint64_t reasoning_tokens() const { return text_->reasoning_tokens(); }

  std::vector<Json> deltas(const std::string& answer) {
    std::vector<Json> all;
    for (const Piece& piece : pieces(answer)) all.push_back(format_->chunk(state_, piece)["delta"]);
    return all;
  }

 private:
  StoryFixture& fixture_;
  chat::ServedForm form_;
  CompletionRequest request_;
  std::unique_ptr<CompletionFormat> format_;
  std::unique_ptr<ChoiceText> text_;
  ChoiceState state_ = {};
};

constexpr const char* kAnswer =
    "<think>\nHmm.\n</think>\n\nLet me see.<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": \"Rome\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": \"Oslo\"}}\n</tool_call>";

TEST(Answer, AWholeReplyHasReasoningContentAndCalls) {
  StoryFixture fixture;
  const Json choice = GivenAnswer(fixture).whole(kAnswer);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const Json& message = choice["message"];
  EXPECT_EQ(message["content"], "Let me see.");
  EXPECT_EQ(message["reasoning_content"], "Hmm.");
  EXPECT_EQ(message["reasoning"], "Hmm.");
  ASSERT_EQ(message["tool_calls"].size(), 2U);
  const Json& call = message["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_FALSE(call.contains("index"));
  EXPECT_EQ(call["function"]["name"], "get_weather");
  EXPECT_EQ(call["function"]["arguments"], R"({"city": "Rome"})");
  EXPECT_NE(call["id"], message["tool_calls"][1]["id"]);
}

TEST(Answer, AReplyThatIsACallAloneHasNoContent) {
  StoryFixture fixture;
  const Json choice = GivenAnswer(fixture).whole(
      "<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call>");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_FALSE(choice["message"].contains("reasoning"));
}

// A call that a stop string cuts is none to make.
TEST(Answer, AStopStringWithinArgumentsLeavesNoCallToMake) {
  StoryFixture fixture;
  GivenAnswer given(fixture, false, {"Rome"});
  const Json choice = given.whole(
      "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}</tool_call>");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], "Rome");
  GivenAnswer behind(fixture, false, {"</tool_call>"});
  EXPECT_EQ(behind.whole("<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": "
                         "\"Rome\"}}</tool_call>")["finish_reason"],
            "tool_calls");
}

// Text that was held back until the end may be reasoning.
TEST(Answer, ReasoningThatEndsAnAnswerIsCounted) {
  StoryFixture fixture;
  GivenAnswer given(fixture);
  given.whole("<think>\nHm. </thi", engine::FinishReason::kLength);
  EXPECT_EQ(given.reasoning_tokens(), given.tokens());
}

TEST(Answer, AnAnswerThatIsCutOffSaysSo) {
  StoryFixture fixture;
  const Json choice = GivenAnswer(fixture).whole(
      "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"ci", engine::FinishReason::kLength);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"ci");
}

// Clients append what they get: a name that came twice would be doubled.
TEST(Answer, AStreamNamesACallOnceAndSendsItsArgumentsInPieces) {
  StoryFixture fixture;
  std::string content;
  std::string reasoning;
  std::vector<std::string> arguments;
  std::vector<int> names;
  for (const Json& delta : GivenAnswer(fixture).deltas(kAnswer)) {
    content += delta.value("content", "");
    reasoning += delta.value("reasoning_content", "");
    EXPECT_EQ(delta.value("reasoning_content", ""), delta.value("reasoning", ""));
    for (const Json& call : delta.value("tool_calls", Json::array())) {
      const auto index = call.at("index").get<std::size_t>();
      if (index == arguments.size()) {
        arguments.emplace_back();
        names.push_back(0);
      }
      ASSERT_LT(index, arguments.size());
      if (call.contains("id")) {
        EXPECT_EQ(call["type"], "function");
        EXPECT_EQ(call["function"]["name"], "get_weather");
        ++names[index];
      } else {
        EXPECT_FALSE(call["function"].contains("name"));
      }
      arguments[index] += call["function"]["arguments"].get<std::string>();
    }
  }
  EXPECT_EQ(content, "Let me see.");
  EXPECT_EQ(reasoning, "Hmm.");
  EXPECT_EQ(names, (std::vector<int>{1, 1}));
  EXPECT_EQ(arguments, (std::vector<std::string>{R"({"city": "Rome"})", R"({"city": "Oslo"})"}));
}

TEST(Answer, OneCallIsAllWhereCallsMayNotBeParallel) {
  StoryFixture fixture;
  const Json choice = GivenAnswer(fixture, true).whole(kAnswer);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U);
}

Json answer_body(const std::string& messages, const std::string& more = "") {
  return Json::parse("{\"model\": \"stories\", \"max_tokens\": 2, \"messages\": " + messages +
                     more + "}");
}

// The path of what is wrong is the error's param.
TEST(Answer, BadHistoriesAndToolsAreRefusedWithTheirPath) {
  StoryFixture fixture;
  const std::string user = R"({"role": "user", "content": "Hi"})";
  const std::string call =
      R"({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
          "function": {"name": "add", "arguments": "{}"}}]})";
  struct BadBody {
    std::string messages;
    std::string more;
    std::string param;
  };
  const std::vector<BadBody> bad = {
      {"[" + user + R"(, {"role": "tool", "content": "1", "tool_call_id": "c1"}])", "",
       "messages[1]"},
      {"[" + user + "," + call + R"(, {"role": "tool", "content": "1", "tool_call_id": "c2"}])", "",
       "messages[2].tool_call_id"},
      {"[" + user + R"(, {"role": "critic", "content": "no"}])", "", "messages[1].role"},
      {"[" + user + R"(, {"role": "assistant", "tool_calls": {}}])", "", "messages[1].tool_calls"},
      {"[" + user + R"(, {"role": "assistant", "tool_calls": [1]}])", "",
       "messages[1].tool_calls[0]"},
      {"[" + user + R"(, {"role": "assistant", "tool_calls": [{"function": {}}]}])", "",
       "messages[1].tool_calls[0].function.name"},
      {"[" + user +
           R"(, {"role": "assistant", "tool_calls": [{"function":
              {"name": "a", "arguments": 1}}]}])",
       "", "messages[1].tool_calls[0].function.arguments"},
      {"[" + user + R"(, {"role": "assistant", "content": "a", "reasoning_content": 1}])", "",
       "messages[1].reasoning_content"},
      {"[" + user + "]", R"(, "tools": [{"type": "function"}])", "tools[0].function"},
      {"[" + user + "]", R"(, "tools": [{"type": "function", "function": {"name": 1}}])",
       "tools[0].function.name"},
      {"[" + user + "]",
       R"(, "tools": [{"type": "function", "function": {"name": "a", "parameters": []}}])",
       "tools[0].function.parameters"},
      {"[" + user + "]",
       R"(, "tools": [{"type": "function", "function": {"name": "get weather"}}])",
       "tools[0].function.name"},
      {"[" + user + "]", R"(, "tools": [{"type": "function", "function": {"name": ""}}])",
       "tools[0].function.name"},
      {"[" + user + "]",
       R"(, "tools": [{"type": "function", "function": {"name": "a"}},
                      {"type": "function", "function": {"name": "a", "strict": true}}])",
       "tools[1].function.name"},
      {"[" + user + "]", R"(, "parallel_tool_calls": 1)", "parallel_tool_calls"},
      {"[" + user + "]", R"(, "reasoning": "high")", "reasoning"},
      {"[" + user + "]", R"(, "thinking": "on")", "thinking"},
      {"[" + user + "]", R"(, "enable_thinking": "yes")", "enable_thinking"},
  };
  for (const BadBody& one : bad) {
    const HttpReply reply =
        fixture.post("/v1/chat/completions", answer_body(one.messages, one.more));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(Json::parse(reply.body)["error"]["param"], one.param) << reply.body;
  }
}

TEST(Answer, AHistoryWithCallsAndResultsIsTaken) {
  StoryFixture fixture;
  const HttpReply reply =
      fixture.post("/v1/chat/completions",
                   answer_body(R"([{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "reasoning": "r", "tool_calls": [{"id": "c1",
         "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "2"}]}])",
                               R"(, "tools": [{"type": "function", "function": {"name": "add"}}],
                   "tool_choice": "auto", "parallel_tool_calls": false,
                   "reasoning": {"effort": "low"}, "thinking": {"type": "enabled"})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
}

// A template that says nothing about tools gets them as part of the system message, and the prompt
// is a function of the request.
TEST(Answer, ToolsReachModelsWhoseTemplateHasNoPlaceForThem) {
  StoryFixture fixture;
  const std::string tools =
      R"(, "tools": [{"type": "function", "function": {"name": "unheard_of"}}])";
  const std::string hi = R"([{"role": "user", "content": "Hi"}])";
  const auto rendered = [&](const std::string& more) {
    return fixture.post("/v1/chat/completions/render", answer_body(hi, more)).body;
  };
  EXPECT_NE(rendered(tools).find("unheard_of"), std::string::npos);
  EXPECT_NE(rendered(tools).find("tool_call"), std::string::npos);
  EXPECT_EQ(rendered(tools), rendered(tools));
  const std::string none = rendered(tools + R"(, "tool_choice": "none")");
  EXPECT_EQ(none.find("unheard_of"), std::string::npos);
}

// The story's template writes no calls: they become text of their message, with the arguments as
// they were sent.
TEST(Answer, CallsOfTheHistoryReachModelsWhoseTemplateHasNoPlaceForThem) {
  StoryFixture fixture;
  const Json rendered =
      fixture.ask("/v1/chat/completions/render", answer_body(R"([{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Wait.", "tool_calls": [{"id": "c1",
         "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"}])"));
  EXPECT_EQ(rendered["prompt"],
            "user: Hi\nassistant: Wait.{\"tool_call\": {\"name\": \"add\", \"arguments\": "
            "{\"a\":1}}}\ntool: 2\nassistant:");
}

}  // namespace
}  // namespace pagoda::server
