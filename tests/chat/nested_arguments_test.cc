// Arguments that are tags within tags, as MiniMax M3's template writes them: what it writes into
// the history is what we write, and is read back as the arguments it came from.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "chat/answer_text.h"
#include "chat/known_forms.h"
#include "chat/reading.h"
#include "test_data.h"
#include "text/chat_template.h"

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "plan", "parameters": {
  "type": "object",
  "$defs": {"stop": {"type": "object", "properties": {
     "name": {"type": "string"}, "code": {"type": "string"}, "nights": {"type": "integer"},
     "next": {"$ref": "#/$defs/stop"}}}},
  "properties": {
    "title": {"type": "string"},
    "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}},
    "codes": {"type": "array", "items": {"type": "string"}},
    "item": {"type": "object", "properties": {"item": {"type": "string"}}},
    "options": {"anyOf": [{"type": "object", "properties": {"exact": {"type": "boolean"},
                           "tags": {"type": "array"}}}, {"type": "null"}]},
    "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    "any": {}}}}}])";

AnswerForm minimax() {
  AnswerForm form;
  form.calls = find_tool_form("minimax_m3")->calls;
  return form;
}

const std::vector<std::string>& plans() {
  static const std::vector<std::string> kPlans = {
      R"({"title": "A <b> & c", "stops": [{"name": "Bern", "code": "0031", "nights": 2}]})",
      R"({"stops": [{"name": "a", "next": {"name": "b", "next": {"code": "true"}}}, {}]})",
      R"({"stops": [], "codes": ["1", "null", " x ", ""], "options": {}})",
      R"({"item": {"item": "1"}, "options": {"exact": true, "tags": ["a", 2, [], {"b": 1.5}]}})",
      R"({"grid": [[1, 2.5], [], [-3]], "title": "</title>"})",
      R"({"any": {"a": {"a": {"a": "x"}}, "list": ["p", "q"]}})",
      R"({"title": "[1, 2]", "any": [1, {"k": "v"}]})",
  };
  return kPlans;
}

// Unknown places of "any" and "tags" have texts that are not JSON, and no empty object or array:
// there the text says nothing of it.
Json as_read(Json plan) {
  if (plan.contains("options") && plan["options"].contains("tags")) {
    plan["options"]["tags"][2] = "";
  }
  return plan;
}

TEST(NestedArguments, AreReadBackHoweverTheyAreCut) {
  const ToolSchemas schemas(Json::parse(kTools), true);
  const AnswerForm form = minimax();
  for (const std::string& plan : plans()) {
    const std::string text = write_calls(*form.calls, {{"plan", Json::parse(plan)}});
    for (const bool whole : {true, false}) {
      const auto pieces =
          whole ? std::vector<std::string_view>{text} : cut_at(text, character_edges(text));
      for (const CallReading reading : {CallReading::kAnySpelling, CallReading::kFirst}) {
        const Reading read = read_pieces(form, schemas, {.calls = reading}, pieces);
        ASSERT_EQ(read.calls.size(), 1U) << text;
        EXPECT_EQ(read.content, "") << text;
        EXPECT_EQ(Json::parse(read.calls[0].arguments, nullptr, false).dump(),
                  as_read(Json::parse(plan)).dump())
            << text;
      }
    }
  }
}

// The model's text comes back in the history: it is found in the cache where both are the same.
TEST(NestedArguments, AreWrittenAsTheTemplateWritesThem) {
  std::ifstream stream(test_data() + "/chat/templates/minimax_m3.jinja");
  std::stringstream source;
  source << stream.rdbuf();
  const auto chat = text::ChatTemplate::parse("minimax_m3", source.str(), {"<s>", "</s>"});
  ASSERT_TRUE(chat.ok());
  const AnswerForm form = minimax();
  for (const std::string& plan : plans()) {
    text::Conversation conversation;
    conversation.tools = Json::parse(kTools);
    conversation.messages = Json::array(
        {{{"role", "user"}, {"content", "Plan it."}},
         {{"role", "assistant"},
          {"content", ""},
          {"tool_calls",
           Json::array({{{"id", "c"},
                         {"type", "function"},
                         {"function", {{"name", "plan"}, {"arguments", Json::parse(plan)}}}}})}},
         {{"role", "tool"}, {"tool_call_id", "c"}, {"content", "done"}}});
    const auto prompt = chat.value().render(conversation, {});
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    const std::string written = write_calls(*form.calls, {{"plan", Json::parse(plan)}});
    EXPECT_NE(prompt.value().bytes().find(written), std::string_view::npos)
        << written << "\n"
        << prompt.value().bytes();
  }
}

// Tags that do not match, and text beside tags, are text; nothing is lost.
TEST(NestedArguments, WhatIsNotNestedWellIsText) {
  const ToolSchemas schemas(Json::parse(kTools), true);
  const AnswerForm form = minimax();
  const std::string mark = "]<]minimax[>[";
  const auto read = [&](const std::string& value) {
    const std::string text = mark + "<tool_call>\n" + mark + "<invoke name=\"plan\">" + mark +
                             "<any>" + value + mark + "</any>" + mark + "</invoke>\n" + mark +
                             "</tool_call>";
    const Reading got = read_pieces(form, schemas, {}, {std::string_view(text)});
    EXPECT_EQ(got.calls.size(), 1U) << text;
    const Json arguments = Json::parse(got.calls.at(0).arguments, nullptr, false);
    EXPECT_TRUE(arguments.contains("any")) << got.calls.at(0).arguments;
    return arguments.value("any", Json());
  };
  EXPECT_EQ(read(mark + "<a>1" + mark + "</a>"), Json({{"a", 1}}));
  EXPECT_EQ(read("x" + mark + "<a>1" + mark + "</a>").dump(),
            Json("x" + mark + "<a>1" + mark + "</a>").dump());
  EXPECT_EQ(read(mark + "<a>1" + mark + "</b>").dump(), Json(mark + "<a>1" + mark + "</b>").dump());
  EXPECT_EQ(read("{\"a\": [1]}"), Json::parse(R"({"a": [1]})")) << "JSON is taken, too";
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += mark + "<a>";
  for (int i = 0; i < 5000; ++i) deep += mark + "</a>";
  EXPECT_TRUE(read(deep).is_object());
}

}  // namespace
}  // namespace pagoda::chat
