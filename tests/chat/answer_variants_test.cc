// What models write that is not quite their family's format: drafts, forgotten markers, older
// formats, answers that are cut off.
#include <gtest/gtest.h>

#include "chat/answer_parser.h"
#include "chat/known_forms.h"
#include "chat/parser_case.h"

namespace pagoda::chat {
namespace {

const std::string kAddText =
    "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>";

// A call that reasoning drafts is no call; one that ends the answer is.
const std::vector<ParserCase> kDrafts = {
    {"a draft before more reasoning",
     "hermes",
     "qwen3",
     "<think>\nPerhaps " + kAddText + "? No.\n</think>\n\nHello.",
     {"Perhaps " + kAddText + "? No.", "Hello.", {}}},
    {"a draft right before the end of the reasoning",
     "hermes",
     "qwen3",
     "Perhaps " + kAddText + "\n</think>\n\nHello.",
     {"Perhaps " + kAddText, "Hello.", {}},
     true},
    {"a draft, then the call",
     "hermes",
     "qwen3",
     "<think>\n" + kAddText + "\n</think>\n\n" + kAddText,
     {kAddText, "", {kAdd}}},
    {"two calls that end the answer",
     "hermes",
     "qwen3",
     "<think>\nSo: " + kAddText + "\n" + kAddText + "\n",
     {"So: ", "", {kAdd, kAdd}}},
    {"two drafts",
     "hermes",
     "qwen3",
     kAddText + "\n" + kAddText + " or",
     {kAddText + "\n" + kAddText + " or", "", {}},
     true},
    {"a draft that is cut off",
     "hermes",
     "qwen3",
     "So <tool_call>{\"name\": \"add\", \"argum",
     {"So <tool_call>{\"name\": \"add\", \"argum", "", {}},
     true},
    {"a call whose end is forgotten",
     "hermes",
     "qwen3",
     "So <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}",
     {"So ", "", {kAdd}},
     true},
    {"a draft of tags",
     "qwen3_coder",
     "qwen3",
     "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>?"
     "\n</think>\n\nNo.",
     {"<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>?",
      "No.",
      {}},
     true},
    {"a marker that reasoning mentions",
     "glm45",
     "glm45",
     "I should mention <tool_call> here.</think>Hello",
     {"I should mention <tool_call> here.", "Hello", {}},
     true},
    {"reasoning that is begun again",
     "hermes",
     "qwen3",
     "<think>\nHm <think>.\n</think>\n\nHello.",
     {"Hm <think>.", "Hello.", {}},
     true},
};

TEST(AnswerVariants, DraftsAreReasoning) {
  for (const ParserCase& one : kDrafts) expect_reading(one);
}

const std::vector<ParserCase> kWritten = {
    {"glm45 in one line",
     "glm45",
     "",
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value><arg_key>days"
     "</arg_key><arg_value>2</arg_value></tool_call>",
     {"", "", {kRome}}},
    {"glm47 in many lines",
     "glm47",
     "",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days"
     "</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
     {"", "", {kRome}}},
    {"kimi_k2 without the word functions",
     "kimi_k2",
     "",
     "<|tool_calls_section_begin|><|tool_call_begin|>add:3<|tool_call_argument_begin|>{\"a\": 1}"
     "<|tool_call_end|><|tool_calls_section_end|>",
     {"", "", {kAdd}}},
    {"qwen3_coder without tool_call",
     "qwen3_coder",
     "",
     "Now.\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n"
     "</parameter>\n</function>\n</tool_call>",
     {"", "Now.\n", {kRome}}},
    {"qwen3_coder without tool_call, of no tool",
     "qwen3_coder",
     "",
     "The tag <function=main> opens.",
     {"", "The tag <function=main> opens.", {}}},
    {"deepseek_v3 without the section",
     "deepseek_v3",
     "",
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     {"", "", {kAdd}}},
    {"mistral in the older format",
     "mistral",
     "",
     "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}, "
     "{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
     {"", "", {kRome, kAdd}}},
    {"llama3_json with a line end between objects",
     "llama3_json",
     "",
     "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rome\", \"days\": 2}}\n"
     "{\"name\": \"add\", \"parameters\": {\"a\": 1}}",
     {"", "", {kRome, kAdd}}},
    {"llama4_json with nothing between objects",
     "llama4_json",
     "",
     "{\"name\": \"add\", \"parameters\": {\"a\": 1}}{\"name\": \"add\", \"parameters\": {\"a\": "
     "1}}",
     {"", "", {kAdd, kAdd}}},
    {"the end of a parameter within a string",
     "qwen3_coder",
     "",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\n<a>\n</parameter>\n</a>\n"
     "</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
     {"", "", {{"get_weather", R"({"city": "<a>\n</parameter>\n</a>", "days": 2})"}}}},
    {"white space between content behind calls",
     "hermes",
     "",
     "A.\n" + kAddText + "\n\nB. " + kAddText + "\n",
     {"", "A.\n\n\nB. ", {kAdd, kAdd}}},
};

TEST(AnswerVariants, AreReadAsWhatIsMeant) {
  for (const ParserCase& one : kWritten) expect_reading(one);
}

TEST(AnswerVariants, TheGenericFormMayHaveBlanks) {
  AnswerForm form;
  form.calls = generic_tool_form();
  const ToolSchemas schemas = weather_schemas();
  for (const std::string begin : {"{\"tool_call\": ", "{ \"tool_call\": ", "{\n  \"tool_call\": ",
                                  "{\n    \"tool_call\": "}) {
    const std::string text = begin + "{\"name\": \"add\", \"arguments\": {\"a\": 1}} }";
    for (const std::size_t edge : character_edges(text)) {
      const Reading read = read_pieces(form, schemas, {}, cut_at(text, {edge}));
      EXPECT_EQ(read.content, "") << text << " cut at " << edge;
      ASSERT_EQ(read.calls.size(), 1U) << text << " cut at " << edge;
      EXPECT_EQ(read.calls[0], kAdd) << text << " cut at " << edge;
    }
  }
}

// Answers that end within a call.
const std::vector<ParserCase> kCut = {
    {"behind the arguments",
     "hermes",
     "",
     "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}, \"more\": 12",
     {"", "", {kAdd}}},
    {"between tagged values",
     "glm47",
     "",
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value>",
     {"", "", {{"get_weather", R"({"city": "Rome"})"}}}},
    {"within the end of a call",
     "qwen3_coder",
     "",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</func",
     {"", "", {{"get_weather", R"({"city": "Rome"})"}}}},
    {"within a key",
     "qwen3_coder",
     "",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=da",
     {"", "<parameter=da", {{"get_weather", R"({"city": "Rome"})"}}}},
    {"within a header of harmony",
     "openai",
     "",
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>comm",
     {"a", "", {}}},
    {"within the first header of harmony", "openai", "", "<|channel|>anal", {"", "", {}}},
};

TEST(AnswerVariants, WhatIsCutOffIsNoGarbage) {
  for (const ParserCase& one : kCut) expect_reading(one);
}

// Code for a tool that nobody offered is no call.
TEST(AnswerVariants, HarmonysOwnToolsAreCallsWhereTheyAreOffered) {
  const ParserCase code = {"python",
                           "openai",
                           "",
                           "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
                           {"print(1)", "", {}}};
  expect_reading(code);
  const ParserCase offered = {"add",
                              "openai",
                              "",
                              "<|channel|>commentary to=add json<|message|>{\"a\": 1}<|call|>",
                              {"", "", {kAdd}}};
  expect_reading(offered);
}

std::vector<std::string> ids_of(const std::string& parser, const std::string& text) {
  const KnownToolForm& known = *find_tool_form(parser);
  AnswerForm form;
  form.calls = known.calls;
  form.ids = known.ids;
  const ToolSchemas schemas = weather_schemas();
  AnswerParser answer(form, schemas, {.id_seed = 3});
  std::vector<std::string> ids;
  for (const AnswerEvent& event : answer.push(text)) {
    if (event.kind == AnswerEvent::Kind::kCallBegin) ids.push_back(event.id);
  }
  return ids;
}

TEST(AnswerVariants, WrittenIdsAreKeptWhereTheyCanBeIds) {
  const std::string kimi = "<|tool_calls_section_begin|><|tool_call_begin|>";
  const std::string kimi_end = "<|tool_call_argument_begin|>{}<|tool_call_end|>";
  EXPECT_EQ(ids_of("kimi_k2", kimi + "functions.add:7" + kimi_end),
            std::vector{std::string("functions.add:7")});
  EXPECT_EQ(ids_of("kimi_k2", kimi + "add:7" + kimi_end), std::vector{std::string("add:7")});
  EXPECT_EQ(ids_of("mistral_nemo",
                   "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {}, \"id\": \"abcdefgh0\"}]"),
            std::vector{std::string("abcdefgh0")});
  EXPECT_EQ(ids_of("mistral", "[TOOL_CALLS]add[CALL_ID]abcdefgh1[ARGS]{}"),
            std::vector{std::string("abcdefgh1")});
  // Too short, in the wrong style, or given twice.
  for (const std::string id : {"0", "not-nine!", "a b c d e"}) {
    const auto made = ids_of("mistral", "[TOOL_CALLS]add[CALL_ID]" + id + "[ARGS]{}");
    ASSERT_EQ(made.size(), 1U);
    EXPECT_NE(made.front(), id);
    EXPECT_EQ(made.front().size(), 9U);
  }
  const std::string twice = "[TOOL_CALLS]add[CALL_ID]abcdefgh1[ARGS]{}";
  const auto both = ids_of("mistral", twice + twice);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0], "abcdefgh1");
  EXPECT_NE(both[1], both[0]);
  const auto hermes = ids_of(
      "hermes", "<tool_call>{\"id\": \"0\", \"name\": \"add\", \"arguments\": {}}</tool_call>");
  ASSERT_EQ(hermes.size(), 1U);
  EXPECT_TRUE(hermes.front().starts_with("call_"));
}

struct TypeCase {
  const char* schema;
  const char* written;
  const char* read;
};

// Schemas as pydantic writes them, and as people do.
constexpr TypeCase kTypes[] = {
    {R"({"type": "string"})", "12", R"("12")"},
    {R"({"type": ["string", "null"]})", "12", R"("12")"},
    {R"({"type": ["string", "null"]})", "null", "null"},
    {R"({"type": ["string", "null"]})", "nullable words that go on for long enough",
     R"("nullable words that go on for long enough")"},
    {R"({"anyOf": [{"type": "string"}, {"type": "null"}]})", "007", R"("007")"},
    {R"({"anyOf": [{"type": "string"}, {"type": "null"}]})", "null", "null"},
    {R"({"anyOf": [{"type": "string"}, {"type": "integer"}]})", "7", "7"},
    {R"({"oneOf": [{"const": "1"}, {"const": "2"}]})", "1", R"("1")"},
    {R"({"enum": ["1", "2"]})", "1", R"("1")"},
    {R"({"enum": [1, 2]})", "1", "1"},
    {R"({"$ref": "#/$defs/Code"})", "12", R"("12")"},
    {R"({"$ref": "#/$defs/Self"})", "12", "12"},
    {R"({"allOf": [{"$ref": "#/$defs/Code"}]})", "12", R"("12")"},
    {R"({"type": "integer"})", "12", "12"},
    {R"({"type": "object"})", "[1]", "[1]"},
    {R"({})", "12", "12"},
};

TEST(AnswerVariants, ValuesHaveTheTypesOfTheirSchemas) {
  AnswerForm form;
  form.calls = find_tool_form("qwen3_coder")->calls;
  for (const TypeCase& one : kTypes) {
    const ToolSchemas schemas(nlohmann::ordered_json::parse(
        R"([{"function": {"name": "f", "parameters": {"$defs": {"Code": {"type": "string"},
             "Self": {"$ref": "#/$defs/Self"}}, "properties": {"v": )" +
        std::string(one.schema) + "}}}}]"));
    const std::string text = "<tool_call>\n<function=f>\n<parameter=v>\n" +
                             std::string(one.written) + "\n</parameter>\n</function>\n</tool_call>";
    for (const std::size_t edge : character_edges(text)) {
      const Reading read = read_pieces(form, schemas, {}, cut_at(text, {edge}));
      ASSERT_EQ(read.calls.size(), 1U);
      EXPECT_EQ(read.calls[0].arguments, "{\"v\": " + std::string(one.read) + "}") << one.schema;
    }
    const Reading read = read_pieces(form, schemas, {}, cut_at(text, character_edges(text)));
    EXPECT_EQ(read.calls.at(0).arguments, "{\"v\": " + std::string(one.read) + "}") << one.schema;
  }
}

// An object that is no call is passed on at once, not when it ends.
TEST(AnswerVariants, JsonThatIsNoCallIsStreamed) {
  AnswerForm form;
  form.calls = find_tool_form("llama3_json")->calls;
  const ToolSchemas schemas = weather_schemas();
  AnswerParser parser(form, schemas, {});
  Reading reading;
  reading.add(parser.push("{\"result\": [1, 2"));
  EXPECT_EQ(reading.content, "{\"result\": [1, 2");
}

// Drafts, values that never end and ends that are none take linear time.
TEST(AnswerVariants, HostileTextTakesLinearTime) {
  const ToolSchemas schemas = weather_schemas();
  const std::vector<std::pair<std::string, std::string>> units = {
      {"hermes", kAddText},
      {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call> "},
      {"glm45", "<tool_call>a"},
      {"glm47", "<tool_call>add<arg_key>a</arg_key><arg_value></arg_value>"},
      {"qwen3_coder", "<tool_call><function=add><parameter=a>x</parameter> "},
      {"pythonic", "[add(a='"},
      {"kimi_k2", "<|tool_call_begin|>"}};
  for (const auto& [parser, unit] : units) {
    for (const bool in_reasoning : {false, true}) {
      AnswerForm form;
      form.calls = find_tool_form(parser)->calls;
      form.reasoning = find_reasoning_form("qwen3")->reasoning;
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      AnswerParser answer(form, schemas, {.in_reasoning = in_reasoning});
      std::size_t events = 0;
      for (std::size_t at = 0; at < text.size(); at += 50) {
        events += answer.push(std::string_view(text).substr(at, 50)).size();
      }
      events += answer.finish().size();
      EXPECT_GT(events, 0U) << parser << ": " << unit;
    }
  }
}

}  // namespace
}  // namespace pagoda::chat
