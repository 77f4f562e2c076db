// Answers in the formats of model families, as those families document them, cut anywhere.
#include "chat/answer_parser.h"

#include <gtest/gtest.h>

#include <set>

#include "chat/known_forms.h"
#include "chat/parser_case.h"

namespace pagoda::chat {
namespace {

const Reading kBoth = {"", "", {kRome, kAdd}};
const Reading kOne = {"", "", {kRome}};

const std::vector<ParserCase> kFamilyCases = {
    {"hermes",
     "hermes",
     "",
     "Let me see.<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", "
     "\"days\": 2}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": "
     "1}}\n</tool_call>",
     {"", "Let me see.", {kRome, kAdd}}},
    {"hermes after thinking",
     "hermes",
     "qwen3",
     "<think>\nHmm <b>.\n</think>\n\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": "
     "1}}\n</tool_call>",
     {"Hmm <b>.", "", {kAdd}}},
    {"thinking opened by the prompt",
     "hermes",
     "qwen3",
     "Hmm.\n</think>\n\nYes & no.",
     {"Hmm.", "Yes & no.", {}},
     true},
    {"thinking without an end", "hermes", "qwen3", "Hmm.\n</thi", {"Hmm.\n</thi", "", {}}, true},
    {"arguments before the name",
     "hermes",
     "",
     "<tool_call>{\"arguments\": {\"a\": 1}, \"id\": \"x\", \"name\": \"add\"}</tool_call>",
     {"", "", {kAdd}}},
    {"arguments as a string",
     "hermes",
     "",
     "<tool_call>{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     {"", "", {kAdd}}},
    {"a nested function",
     "hermes",
     "",
     "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": "
     "{\"a\": 1}}}</tool_call>",
     {"", "", {kAdd}}},
    {"no arguments",
     "hermes",
     "",
     "<tool_call>{\"name\": \"add\"}</tool_call>",
     {"", "", {{"add", "{}"}}}},
    {"a raw line end and a wrong escape in a string",
     "hermes",
     "",
     "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"x\ny\\d\"}}</tool_call>",
     {"", "", {{"add", "{\"a\": \"x\\ny\\\\d\"}"}}}},
    {"qwen3_coder", "qwen3_coder", "",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n"
     "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=add>\n"
     "<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
     kBoth},
    {"qwen3_coder keeps a string as it stands",
     "qwen3_coder",
     "",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\n12 < \"é\"\n</p>\n</parameter>\n"
     "<parameter=more>\n{\"a\": [True]}\n</parameter>\n</function>\n</tool_call>",
     {"", "", {{"get_weather", R"({"city": "12 < \"é\"\n</p>", "more": {"a": [true]}})"}}}},
    {"glm45",
     "glm45",
     "glm45",
     "\n<think>t</think>\nA<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome"
     "</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
     {"t", "A", {kRome}}},
    {"minicpm5 quotes texts that look like tags",
     "minicpm5",
     "",
     "<function name=\"get_weather\"><param name=\"city\"><![CDATA[a </param> <b>\n&]]]></param>"
     "<param name=\"days\">2</param><param name=\"more\"><![CDATA[{]]></param></function>",
     {"", "", {{"get_weather", R"({"city": "a </param> <b>\n&]", "days": 2, "more": "{"})"}}}},
    {"step3",
     "step3",
     "step3",
     "<think>t</think>A<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
     "<steptml:invoke name=\"get_weather\"><steptml:parameter name=\"city\">Rome"
     "</steptml:parameter><steptml:parameter name=\"days\">2</steptml:parameter>"
     "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
     {"t", "A", {kRome}}},
    {"hy_v3",
     "hy_v3",
     "hy_v3",
     "<think:opensource>t</think:opensource>A<tool_calls:opensource>\n<tool_call:opensource>"
     "get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
     "<arg_value:opensource>Rome</arg_value:opensource>\n<arg_key:opensource>days"
     "</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n"
     "</tool_call:opensource>\n</tool_calls:opensource>",
     {"t", "A", {kRome}}},
    {"kimi_k3 writes the type of a value, null too",
     "kimi_k3",
     "kimi_k3",
     "<|open|>think<|sep|>t<|close|>think<|sep|><|open|>response<|sep|><|open|>tools<|sep|>"
     "<|open|>call tool=\"get_weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
     "type=\"null\"<|sep|>null<|close|>argument<|sep|><|open|>argument key=\"more\" "
     "type=\"string\"<|sep|>null<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
     {"t", "", {{"get_weather", R"({"city": null, "more": "null"})"}}}},
    {"glm47 without arguments",
     "glm47",
     "",
     "<tool_call>add</tool_call>",
     {"", "", {{"add", "{}"}}}},
    {"llama3_json", "llama3_json", "",
     "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rome\", \"days\": 2}}", kOne},
    {"llama3_json with python_tag", "llama3_json", "",
     "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rome\", \"days\": "
     "2}}; {\"name\": \"add\", \"parameters\": {\"a\": 1}}",
     kBoth},
    {"llama3_json of no tool",
     "llama3_json",
     "",
     "{\"name\": \"Bob\", \"parameters\": {}}",
     {"", "{\"name\": \"Bob\", \"parameters\": {}}", {}}},
    {"pythonic", "pythonic", "", "[get_weather(city='Rome', days=2), add(a=1)]", kBoth},
    {"pythonic values",
     "pythonic",
     "",
     "[get_weather(city=\"it's \\\"R\\\"\\n\\u00e9\", more={'k': [None, True, -1.5e3], 'e': "
     "()})]",
     {"",
      "",
      {{"get_weather",
        R"({"city": "it's \"R\"\né", "more": {"k": [null, true, -1.5e3], "e": []}})"}}}},
    {"pythonic texts with a backslash before no digits",
     "pythonic",
     "",
     "[get_weather(city=\"C:\\up\"), get_weather(city='\\u12', more=\"\\xg\"), "
     "get_weather(city=\"\\u\")]",
     {"",
      "",
      {{"get_weather", R"({"city": "C:\\up"})"},
       {"get_weather", R"({"city": "\\u12", "more": "\\xg"})"},
       {"get_weather", R"({"city": "\\u"})"}}}},
    {"a list that is no call", "pythonic", "", "[1, 2] is a list", {"", "[1, 2] is a list", {}}},
    {"olmo3", "olmo3", "",
     "<function_calls>get_weather(city=\"Rome\", days=2)\nadd(a=1)</function_calls>", kBoth},
    {"lfm2",
     "lfm2",
     "",
     "<|tool_call_start|>[get_weather(city=\"Rome\", days=2)]<|tool_call_end|>Done.",
     {"", "Done.", {kRome}}},
    {"mistral",
     "mistral",
     "mistral",
     "[THINK]t[/THINK]A[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Rome\", \"days\": "
     "2}[TOOL_CALLS]add[CALL_ID]abcdefgh1[ARGS]{\"a\": 1}",
     {"t", "A", {kRome, kAdd}}},
    {"mistral_nemo", "mistral_nemo", "",
     "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}, "
     "\"id\": \"abcdefgh0\"}, {\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
     kBoth},
    {"deepseek_v3", "deepseek_v3", "",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
     "{\"city\": \"Rome\", \"days\": 2}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function"
     "<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     kBoth},
    {"deepseek_v31", "deepseek_v31", "",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Rome\", "
     "\"days\": 2}<｜tool▁call▁end｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": "
     "1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     kBoth},
    {"deepseek_v32", "deepseek_v32", "",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter "
     "name=\"city\" string=\"true\">Rome</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
     "string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke "
     "name=\"add\">\n<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     kBoth},
    {"kimi_k2", "kimi_k2", "",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
     "<|tool_call_argument_begin|>{\"city\": \"Rome\", \"days\": 2}<|tool_call_end|>"
     "<|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>{\"a\": 1}"
     "<|tool_call_end|><|tool_calls_section_end|>",
     kBoth},
    {"minimax_m2", "minimax_m2", "",
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
     "name=\"city\">Rome</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n<invoke "
     "name=\"add\">\n<parameter name=\"a\">1</parameter>\n</invoke>\n</minimax:tool_call>",
     kBoth},
    {"minimax_m3", "minimax_m3", "",
     "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">]<]minimax[>[<city>"
     "Rome]<]minimax[>[</city>]<]minimax[>[<days>2]<]minimax[>[</days>]<]minimax[>[</invoke>\n"
     "]<]minimax[>[</tool_call>",
     kOne},
    {"openai",
     "openai",
     "",
     "<|channel|>analysis<|message|>Need "
     "<weather>.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Rome\", \"days\": 2}",
     {"Need <weather>.", "", {kRome}}},
    {"openai with the recipient first",
     "openai",
     "",
     " to=functions.add<|channel|>commentary json<|message|>{\"a\": 1}",
     {"", "", {kAdd}}},
    {"openai final",
     "openai",
     "",
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hello "
     "<|x",
     {"a", "Hello <|x", {}}},
    {"openai without a header", "openai", "", "Plain text.", {"", "Plain text.", {}}},
    {"gemma4",
     "gemma4",
     "gemma4",
     "<|channel>thought\nt\n<channel|><|tool_call>call:get_weather{city:<|\"|>Rome<|\"|>,days:2}"
     "<tool_call|><|tool_call>call:add{a:1}<tool_call|>",
     {"t", "", {kRome, kAdd}}},
    {"gemma4 values",
     "gemma4",
     "",
     "<|tool_call>call:get_weather{city:<|\"|>a \"}, b<|\"|>,more:{k:[<|\"|>x<|\"|>,true]}}"
     "<tool_call|>",
     {"", "", {{"get_weather", R"({"city": "a \"}, b", "more": {"k": ["x", true]}})"}}}},
    {"functiongemma", "functiongemma", "",
     "<start_function_call>call:get_weather{city:<escape>Rome<escape>,days:2}<end_function_call>",
     kOne},
    {"phi4_mini_json", "phi4_mini_json", "",
     "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}]",
     kOne},
    {"granite", "granite", "",
     "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": "
     "2}}]",
     kOne},
    {"apertus", "apertus", "",
     "<|tools_prefix|>[{\"get_weather\": {\"city\": \"Rome\", \"days\": 2}}, {\"add\": {\"a\": "
     "1}}]<|tools_suffix|>",
     kBoth},
    {"cohere",
     "cohere_command3",
     "cohere_command3",
     "<|START_THINKING|>t<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
     "\"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Rome\", \"days\": 2}}\n]"
     "<|END_ACTION|>",
     {"t", "", {kRome}}},
};

// Text that is no call, or stops being one. Nothing of it is lost.
std::vector<ParserCase> malformed_cases() {
  const auto same = [](std::string label, std::string tools, std::string text) {
    return ParserCase{std::move(label), std::move(tools), "qwen3", text, {"", text, {}}};
  };
  return {
      same("a marker alone", "hermes", "Use <tool_call> to call."),
      same("half a marker at the end", "hermes", "a <tool_c"),
      same("half a call", "hermes", "<tool_call>\n{\"name\": \"add\", \"argu"),
      same("no object", "hermes", "<tool_call>[1]</tool_call>"),
      same("a name that is no text", "hermes", "<tool_call>{\"name\": 3}</tool_call> b"),
      same("no name", "hermes", "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>"),
      same("a bad name", "qwen3_coder", "<tool_call>\n<function=>\n</function></tool_call>"),
      same("half a Python call", "pythonic", "[add(a=1"),
      same("a bad Python call", "pythonic", "[add(a=)]"),
      same("too deep", "pythonic",
           "[add(a=" + std::string(100, '[') + std::string(100, ']') + ")]"),
      same("thinking behind content", "hermes", "The tag <think> opens.</think>"),
      {"a bad value within arguments",
       "hermes",
       "",
       "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": oops}}</tool_call>",
       {"", "}}</tool_call>", {{"add", "{\"a\": oops"}}}},
      {"cut off in its arguments",
       "hermes",
       "",
       "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"x",
       {"", "", {{"add", "{\"a\": \"x"}}}},
      {"cut off in a tagged value",
       "qwen3_coder",
       "",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</para",
       {"", "", {{"get_weather", "{\"city\": \"Rome\\n</para"}}}},
      {"a second call that is none",
       "hermes",
       "",
       "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call><tool_call>no",
       {"", "<tool_call>no", {kAdd}}},
      {"a call that ends an answer within thinking, of a known tool",
       "hermes",
       "qwen3",
       "<think>\nI call <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>",
       {"I call ", "", {kAdd}}},
      {"a call within thinking, of no tool",
       "hermes",
       "qwen3",
       "<think>\nI call <tool_call>{\"name\": \"sub\", \"arguments\": {\"a\": 1}}</tool_call>",
       {"I call <tool_call>{\"name\": \"sub\", \"arguments\": {\"a\": 1}}</tool_call>", "", {}}},
  };
}

TEST(AnswerParser, ReadsTheFormatsOfFamiliesHoweverTheyAreCut) {
  for (const ParserCase& one : kFamilyCases) expect_reading(one);
}

TEST(AnswerParser, LosesNothingOfWhatIsNoCall) {
  for (const ParserCase& one : malformed_cases()) expect_reading(one);
}

TEST(AnswerParser, EndsBeforeASecondCallWhereThereMayBeOne) {
  AnswerForm form;
  form.calls = find_tool_form("hermes")->calls;
  const ToolSchemas schemas = weather_schemas();
  const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
  AnswerParser parser(form, schemas, {.single_call = true});
  Reading reading;
  reading.add(parser.push("A" + call));
  EXPECT_FALSE(parser.ended());
  reading.add(parser.push("\n" + call + "B"));
  EXPECT_TRUE(parser.ended());
  reading.add(parser.finish());
  EXPECT_EQ(reading, (Reading{"", "A", {{"add", "{}"}}}));
}

TEST(AnswerParser, CallsAreContentWhereNoneAreWanted) {
  AnswerForm form;
  form.calls = find_tool_form("hermes")->calls;
  const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
  const Reading read =
      read_pieces(form, ToolSchemas(), {.reads_calls = false}, {std::string_view(call)});
  EXPECT_EQ(read.content, call);
}

TEST(AnswerParser, IdsHaveTheStyleOfTheirFamilyAndDiffer) {
  const ToolSchemas schemas = weather_schemas();
  const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
  for (const CallIdStyle style : {CallIdStyle::kAny, CallIdStyle::kNine, CallIdStyle::kKimi}) {
    AnswerForm form;
    form.calls = find_tool_form("hermes")->calls;
    form.ids = style;
    AnswerParser parser(form, schemas, {.id_seed = 5});
    std::vector<std::string> ids;
    for (const AnswerEvent& event : parser.push(call + call)) {
      if (event.kind == AnswerEvent::Kind::kCallBegin) ids.push_back(event.id);
    }
    ASSERT_EQ(ids.size(), 2U);
    EXPECT_NE(ids[0], ids[1]);
    if (style == CallIdStyle::kNine) {
      EXPECT_EQ(ids[0].size(), 9U);
    }
    if (style == CallIdStyle::kKimi) {
      EXPECT_EQ(ids[1], "functions.add:1");
    }
  }
}

// The model's own id may be the one that another call would get.
TEST(AnswerParser, MadeUpIdsAreNotThoseThatTheModelWrote) {
  const ToolSchemas schemas = weather_schemas();
  AnswerForm form;
  form.calls = find_tool_form("kimi_k2")->calls;
  form.ids = CallIdStyle::kKimi;
  AnswerParser parser(form, schemas, {});
  std::string text = "<|tool_calls_section_begin|>";
  for (int i = 0; i < 3; ++i) {
    text += "<|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>{}<|tool_call_end|>";
  }
  std::set<std::string> ids;
  for (const AnswerEvent& event : parser.push(text + "<|tool_calls_section_end|>")) {
    if (event.kind == AnswerEvent::Kind::kCallBegin) ids.insert(event.id);
  }
  EXPECT_EQ(ids.size(), 3U);
}

struct WrittenCase {
  const char* what;
  const char* form;
  CallReading calls;
  std::string text;
  Reading read;
};

// Where a grammar makes the model write calls in one way, nothing else is one.
TEST(AnswerParser, CallsAreReadAsAGrammarWritesThem) {
  const ReadCall add = {"add", "{\"a\": 1}"};
  const std::string inner = "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>";
  const std::string bare = R"({"name": "add", "parameters": {"a": 1}})";
  const std::string tagged = "<tool_call>\n" + inner + "\n</tool_call>";
  using enum CallReading;
  for (const WrittenCase& one : std::vector<WrittenCase>{
           {"as written", "qwen3_coder", kAsWritten, "So: " + tagged, {"", "So: ", {add}}},
           {"the section's marker is forgotten", "qwen3_coder", kAsWritten, inner, {"", inner, {}}},
           {"any spelling", "qwen3_coder", kAnySpelling, inner, {"", "", {add}}},
           {"behind words", "qwen3_coder", kFirst, "So: " + tagged, {"", "So: " + tagged, {}}},
           {"within reasoning", "qwen3_coder", kAsWritten, "<think>" + tagged, {tagged, "", {}}},
           {"bare", "llama3_json", kAsWritten, bare, {"", "", {add}}},
           {"bare with a blank",
            "llama3_json",
            kAsWritten,
            "{ " + bare.substr(1),
            {"", "{ " + bare.substr(1), {}}},
           {"a tool that is not allowed",
            "llama3_json",
            kAsWritten,
            R"({"name": "sub", "parameters": {}})",
            {"", R"({"name": "sub", "parameters": {}})", {}}},
           {"cut before the name", "qwen3_coder", kAlone, "<tool_call>\n<function=ad", {}},
           {"cut within a marker", "qwen3_coder", kAlone, "<tool_c", {}},
           {"cut within the bare opening", "llama3_json", kAlone, "{\"na", {}},
           {"text that is cut", "qwen3_coder", kAsWritten, "a <tool_c", {"", "a <tool_c", {}}}}) {
    AnswerForm form;
    form.calls = find_tool_form(one.form)->calls;
    form.reasoning = find_reasoning_form("qwen3")->reasoning;
    const ToolSchemas schemas = weather_schemas();
    const AnswerOptions options = {.calls = one.calls};
    const auto edges = character_edges(one.text);
    EXPECT_EQ(read_pieces(form, schemas, options, {one.text}), one.read) << one.what;
    EXPECT_EQ(read_pieces(form, schemas, options, cut_at(one.text, edges)), one.read) << one.what;
  }
}

// A text that begins many calls and ends none must take linear time: doubling it doubles the work.
TEST(AnswerParser, HostileTextTakesLinearTime) {
  AnswerForm form;
  form.calls = find_tool_form("hermes")->calls;
  form.reasoning = find_reasoning_form("qwen3")->reasoning;
  const ToolSchemas schemas = weather_schemas();
  for (const std::string& unit :
       {std::string("<tool_call>{\"arguments\": "), std::string("<tool_call>"), std::string("\n"),
        std::string("<tool_call>{\"name\": \"add\", \"arguments\": [")}) {
    std::string text;
    while (text.size() < 2'000'000) text += unit;
    AnswerParser parser(form, schemas, {});
    Reading reading;
    for (std::size_t at = 0; at < text.size(); at += 50) {
      reading.add(parser.push(std::string_view(text).substr(at, 50)));
    }
    reading.add(parser.finish());
    EXPECT_EQ(reading.content.size(), text.size()) << unit;
  }
}

// So must white space before an answer that may begin a call without a marker.
TEST(AnswerParser, LongWhiteSpaceIsContentAtOnce) {
  for (const char* const name : {"llama3_json", "pythonic"}) {
    AnswerForm form;
    form.calls = find_tool_form(name)->calls;
    const ToolSchemas schemas = weather_schemas();
    AnswerParser parser(form, schemas, {});
    Reading reading;
    for (int i = 0; i < 500'000; ++i) reading.add(parser.push(" \n  "));
    EXPECT_GT(reading.content.size(), 1'900'000u) << name;
  }
}

}  // namespace
}  // namespace pagoda::chat
