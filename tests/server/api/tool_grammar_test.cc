// The grammars of tool calls, in every form that is known: what templates write is taken, what
// breaks a schema is refused, and what a grammar lets through is read back as calls that match.
#include "server/api/tool_grammar.h"

#include <gtest/gtest.h>

#include <random>

#include "chat/answer_parser.h"
#include "chat/answer_text.h"
#include "chat/known_forms.h"
#include "server/api/answer_grammar.h"
#include "server/api/chat_prompt.h"
#include "server/api/tool_forms.h"
#include "server/reading_memory.h"
#include "structured/matcher.h"
#include "structured/text_nodes.h"

namespace pagoda::server {
namespace {

using structured::GrammarBuilder;
using structured::matches_text;

const Json& weather_tools() {
  static const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "get_weather", "strict": true, "parameters": {
      "type": "object",
      "properties": {"city": {"type": "string"},
                     "days": {"type": "integer", "minimum": 1, "maximum": 9},
                     "unit": {"type": "string", "enum": ["C", "F"]}},
      "required": ["city"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "ping"}}])");
  return kTools;
}

// Markers are plain texts here.
std::shared_ptr<const structured::Grammar> grammar_of(const chat::AnswerForm& form, Json fields,
                                                      bool with_text = false) {
  fields["tools"] = weather_tools();
  const ToolChoice choice = read_tool_choice(Fields(fields));
  const MarkedText marked({}, any_tokenizer());
  GrammarBuilder builder;
  ToolGrammar tools(builder, form, marked, choice);
  const auto root = with_text ? tools.text_or_calls() : tools.calls(true);
  return builder.finish(root).value();
}

std::string written(const chat::AnswerForm& form, const std::vector<chat::WrittenCall>& calls) {
  if (!form.channels) return chat::write_calls(*form.calls, calls);
  return "<|channel|>commentary to=functions." + calls[0].name + " <|constrain|>json<|message|>" +
         chat::spaced_json(calls[0].arguments);
}

TEST(ToolGrammar, WhatAFormWritesIsTakenAndWhatBreaksTheSchemaIsRefused) {
  for (const auto& [name, form] : all_forms()) {
    const auto grammar = grammar_of(form, {{"tool_choice", "required"}});
    for (const char* const arguments :
         {R"({"city": "Rome"})", R"({"city": "Rome", "days": 3})", R"({"city": "", "unit": "F"})",
          R"({"city": "a\"b\nc é", "days": 9, "unit": "C"})"}) {
      const std::string text = written(form, {{"get_weather", Json::parse(arguments)}});
      EXPECT_TRUE(matches_text(*grammar, text)) << name << " takes " << text;
    }
    EXPECT_TRUE(matches_text(*grammar, written(form, {{"ping", Json::object()}}))) << name;
    for (const char* const arguments :
         {R"({"city": "Rome", "days": 12})", R"({"days": 3})", R"({"city": "Rome", "unit": "K"})",
          R"({"city": "Rome", "more": 1})", R"({"city": "Rome", "days": "x"})"}) {
      const std::string text = written(form, {{"get_weather", Json::parse(arguments)}});
      EXPECT_FALSE(matches_text(*grammar, text)) << name << " refuses " << text;
    }
    const chat::WrittenCall other = {"get_time", Json::object()};
    EXPECT_FALSE(matches_text(*grammar, written(form, {other}))) << name;
    EXPECT_FALSE(matches_text(*grammar, "Hello.")) << name;
  }
}

TEST(ToolGrammar, SeveralCallsAreTakenUnlessThereMayBeOneOnly) {
  const std::vector<chat::WrittenCall> two = {{"ping", Json::object()},
                                              {"get_weather", {{"city", "Rome"}}}};
  for (const auto& [name, form] : all_forms()) {
    if (form.channels) continue;  // a call ends its message
    const std::string text = written(form, two);
    EXPECT_TRUE(matches_text(*grammar_of(form, {{"tool_choice", "required"}}), text)) << name;
    for (const Json& fields : std::vector<Json>{
             {{"tool_choice", "required"}, {"parallel_tool_calls", false}},
             {{"tool_choice", {{"type", "function"}, {"function", {{"name", "ping"}}}}}}}) {
      const auto single = grammar_of(form, fields);
      EXPECT_FALSE(matches_text(*single, text)) << name << fields.dump();
      EXPECT_TRUE(matches_text(*single, written(form, {two[0]}))) << name << fields.dump();
    }
  }
}

TEST(ToolGrammar, TextMayComeWithoutCallsOrBeforeThem) {
  for (const auto& [name, form] : all_forms()) {
    const auto grammar = grammar_of(form, Json::object(), true);
    const std::string good = written(form, {{"get_weather", {{"city", "Rome"}}}});
    const std::string bad = written(form, {{"get_weather", {{"days", 3}}}});
    EXPECT_TRUE(matches_text(*grammar, good)) << name << " takes " << good;
    EXPECT_FALSE(matches_text(*grammar, bad)) << name << " refuses " << bad;
    if (form.channels) continue;
    EXPECT_TRUE(matches_text(*grammar, "It is 21 < 22 degrees, you see.")) << name;
    EXPECT_TRUE(matches_text(*grammar, "")) << name;
    const bool has_marker = !chat::section_marker(*form.calls).empty();
    EXPECT_TRUE(!has_marker || matches_text(*grammar, "Let me see. " + good)) << name;
    EXPECT_FALSE(has_marker && matches_text(*grammar, "Let me see. " + bad)) << name;
  }
}

TEST(ToolGrammar, WhatAGrammarLetsThroughIsReadAsCallsThatMatch) {
  std::mt19937 random(22);
  const chat::ToolSchemas schemas(weather_tools());
  for (const auto& [name, form] : all_forms()) {
    const auto grammar =
        grammar_of(form, {{"tool_choice", "required"}, {"parallel_tool_calls", false}});
    int read = 0;
    for (int i = 0; i < 60; ++i) {
      const std::string text = TextDrawer(grammar, {}, random).draw();
      if (text.empty()) continue;
      ++read;
      chat::AnswerParser parser(form, schemas, {});
      std::vector<chat::AnswerEvent> events = parser.push(text);
      for (chat::AnswerEvent& event : parser.finish()) events.push_back(std::move(event));
      std::string called;
      std::string arguments;
      for (const chat::AnswerEvent& event : events) {
        if (event.kind == chat::AnswerEvent::Kind::kCallBegin) called += event.text;
        if (event.kind == chat::AnswerEvent::Kind::kArguments) arguments += event.text;
        EXPECT_NE(event.kind, chat::AnswerEvent::Kind::kContent) << name << ": " << text;
      }
      const Json value = Json::parse(arguments, nullptr, false);
      ASSERT_TRUE(value.is_object()) << name << ": " << text << "\n" << arguments;
      if (called == "ping") {
        EXPECT_TRUE(value.empty()) << name << ": " << text;
        continue;
      }
      EXPECT_EQ(called, "get_weather") << name << ": " << text;
      EXPECT_TRUE(value["city"].is_string()) << name << ": " << text;
      const Json days = value.value("days", Json(1));
      EXPECT_TRUE(days.is_number_integer() && days >= 1 && days <= 9) << name << ": " << text;
      const Json unit = value.value("unit", Json("C"));
      EXPECT_TRUE(unit == "C" || unit == "F") << name << ": " << text;
    }
    EXPECT_GT(read, 10) << name;
  }
}

struct RefusedChoice {
  Json choice;
  std::string param;
  std::string message;
};

TEST(ToolChoice, AChoiceThatCannotBeIsRefusedWithItsPath) {
  for (const RefusedChoice& one : std::vector<RefusedChoice>{
           {"always", "tool_choice", "expected none, auto or required"},
           {5, "tool_choice", "a string or an object"},
           {{{"type", "function"}, {"function", {{"name", "x"}}}}, "tool_choice", "no tool has"},
           {{{"type", "function"}, {"function", Json::object()}}, "tool_choice.function.name", ""},
           {{{"type", "web_search"}}, "tool_choice.type", "is not supported"},
           {{{"type", "allowed_tools"}, {"allowed_tools", {{"mode", "auto"}}}},
            "tool_choice.allowed_tools.tools",
            ""},
           {{{"type", "allowed_tools"}, {"mode", "may"}, {"tools", Json::array()}},
            "tool_choice.mode",
            "expected none, auto or required"}}) {
    const Json body = {{"tools", weather_tools()}, {"tool_choice", one.choice}};
    try {
      read_tool_choice(Fields(body));
      ADD_FAILURE() << one.choice.dump();
    } catch (const ApiError& error) {
      EXPECT_EQ(error.param, one.param) << error.message;
      EXPECT_NE(error.message.find(one.message), std::string::npos) << error.message;
    }
  }
  const Json without = {{"tool_choice", "required"}};
  EXPECT_THROW(read_tool_choice(Fields(without)), ApiError);
}

TEST(ToolChoice, AllowedToolsAreReadInBothForms) {
  const Json nested = {{"type", "function"}, {"function", {{"name", "ping"}}}};
  const Json flat = {{"type", "function"}, {"name", "ping"}};
  for (const Json& given : std::vector<Json>{
           {{"type", "allowed_tools"},
            {"allowed_tools", {{"mode", "required"}, {"tools", Json::array({nested})}}}},
           {{"type", "allowed_tools"}, {"mode", "required"}, {"tools", Json::array({flat})}}}) {
    const Json body = {{"tools", weather_tools()}, {"tool_choice", given}};
    const ToolChoice choice = read_tool_choice(Fields(body));
    EXPECT_EQ(choice.mode, ToolChoice::Mode::kRequired);
    ASSERT_EQ(choice.tools.size(), 1U);
    EXPECT_EQ(choice.tools[0].name, "ping");
    EXPECT_TRUE(choice.needs_grammar());
  }
}

std::unique_ptr<ServedModel> without_grammars(const ServedModel& served) {
  std::unique_ptr<ServedModel> model(new ServedModel{.names = served.names,
                                                     .tokenizer = served.tokenizer,
                                                     .chat_template = std::nullopt,
                                                     .engine = served.engine,
                                                     .step_notifier = served.step_notifier,
                                                     .fingerprint = served.fingerprint});
  model->form = served.form;
  return model;
}

// With tool_choice auto, the default, a grammar holds the model to the generic form as well.
TEST(ToolGrammar, TheGenericFormIsWrittenAsItIsReadWhereACallIsFree) {
  const auto read = [](const Json& fields, const ServedModel& model) {
    Json body = {{"messages", {{{"role", "user"}, {"content", "Rome?"}}}},
                 {"tools", weather_tools()}};
    body["tools"][0]["function"].erase("strict");
    body.update(fields);
    ReadingMemory memory(nullptr);
    const ReadingTerms terms = {memory, true};
    AnswerGrammar grammar(Fields(body), model, terms);
    grammar.read_tools(Fields(body));
    AnswerTerms answer = {.form = &*model.form};
    grammar.set_reading(answer);
    CompletionRequest request;
    grammar.finish(&answer, request);
    return std::pair(request.engine.constraint, answer.options.calls);
  };
  static StoryFixture fixture;
  const ServedModel& served = fixture.served();
  const std::string asked = R"({"tool_call": {"name": "get_weather", "arguments": {"town": 1}}})";
  const std::string pinged = R"({"tool_call": {"name": "ping", "arguments": {}}})";
  const auto [several, reading] = read(Json::object(), served);
  ASSERT_NE(several, nullptr);
  EXPECT_EQ(reading, chat::CallReading::kAsWritten);
  const structured::Grammar& made = several->grammar();
  for (const std::string& taken : {std::string(), std::string("Once upon a {time}."), asked,
                                   "I do. " + asked, asked + "\n" + pinged}) {
    EXPECT_TRUE(matches_text(made, taken)) << taken;
  }
  for (const std::string refused :
       {R"({"tool_call": {"name": "get_time", "arguments": {}}})", R"({"tool_call": "ping"})",
        R"({"tool_call": {"name": "ping", "arguments": [1]}})", R"({"tool_call": {"name": "ping")",
        R"({ "tool_call": {"name": "ping", "arguments": {}}})", "{\n  \"tool_call\": no"}) {
    EXPECT_FALSE(matches_text(made, refused)) << refused;
  }
  const auto [one, _] = read({{"parallel_tool_calls", false}}, served);
  EXPECT_TRUE(matches_text(one->grammar(), asked));
  EXPECT_FALSE(matches_text(one->grammar(), asked + "\n" + pinged));
  EXPECT_EQ(read({{"tool_choice", "none"}}, served).first, nullptr);
  // Without grammars, calls are read as the model writes them.
  const auto [none, any_spelling] = read(Json::object(), *without_grammars(served));
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(any_spelling, chat::CallReading::kAnySpelling);
}

// Control tokens that are markers are named by a grammar, and are in no text.
TEST(ToolGrammar, AMarkerThatIsAControlTokenIsThatToken) {
  const std::string mark = structured::control_bytes(TokenId(1000));
  GrammarBuilder builder;
  const auto call = builder.sequence({builder.json_object(), builder.literal(mark)});
  const auto grammar = builder.finish(builder.text_until(mark, call, true)).value();
  EXPECT_TRUE(matches_text(*grammar, "text"));
  EXPECT_TRUE(matches_text(*grammar, "text" + mark + "{\"a\":1}" + mark));
  EXPECT_FALSE(matches_text(*grammar, "text" + mark));
  EXPECT_FALSE(matches_text(*grammar, mark + "{\"a\":\"" + mark + "\"}" + mark));
}

}  // namespace
}  // namespace pagoda::server
