// What is written in a form is read back, for every form of the table and of every template.
#include "chat/answer_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "chat/call_literals.h"
#include "chat/derive.h"
#include "chat/known_forms.h"
#include "chat/reading.h"
#include "test_data.h"

namespace pagoda::chat {
namespace {

using Json = nlohmann::ordered_json;

ToolSchemas order_schemas() {
  return ToolSchemas(Json::parse(R"([
    {"function": {"name": "order", "parameters": {"properties": {
      "note": {"type": "string"}, "count": {"type": "integer"}, "deep": {"type": "object"},
      "list": {"type": "array"}, "sure": {"type": "boolean"}}}}},
    {"function": {"name": "stop"}}])"));
}

void expect_round_trip(const std::string& label, const AnswerForm& form) {
  const WrittenCall order = {"order", Json::parse(R"({
      "note": "Zürich \"x\", it's\n2 < 3", "count": 3, "deep": {"a": [1, true, null]},
      "list": ["p", "q"], "sure": false})")};
  WrittenAnswer answer = {.calls = {order, {"stop", Json::object()}}};
  // A call that nothing announces is the whole of the content.
  const bool announced = form.channels || !section_marker(*form.calls).empty();
  if (announced) answer.content = "I order.";
  if (form.channels || form.reasoning) answer.reasoning = "Let me think.";
  for (const bool open : {false, true}) {
    if (form.reasoning && form.reasoning->begin.empty() && !open) continue;
    const bool in_reasoning = open && form.reasoning.has_value();
    const std::string text = write_answer(form, answer, in_reasoning);
    for (const bool whole : {true, false}) {
      const auto pieces =
          whole ? std::vector<std::string_view>{text} : cut_at(text, character_edges(text));
      const Reading read =
          read_pieces(form, order_schemas(), {.in_reasoning = in_reasoning}, pieces);
      EXPECT_EQ(read.reasoning, answer.reasoning) << label << "\n" << text;
      EXPECT_EQ(read.content, answer.content) << label << "\n" << text;
      ASSERT_EQ(read.calls.size(), 2U) << label << "\n" << text;
      EXPECT_EQ(read.calls[0].name, "order") << label;
      EXPECT_EQ(Json::parse(read.calls[0].arguments, nullptr, false), order.arguments)
          << label << "\n"
          << read.calls[0].arguments;
      EXPECT_EQ(read.calls[1].name, "stop") << label;
      EXPECT_EQ(read.calls[1].arguments, "{}") << label;
    }
  }
}

TEST(AnswerText, IsReadBackInEveryFormOfTheTable) {
  for (const KnownToolForm& known : known_tool_forms()) {
    AnswerForm form;
    form.calls = known.calls;
    form.channels = known.channels;
    if (!known.channels) form.reasoning = find_reasoning_form("qwen3")->reasoning;
    expect_round_trip(std::string(known.names.front()), form);
  }
  AnswerForm generic;
  generic.calls = generic_tool_form();
  expect_round_trip("generic", generic);
}

TEST(AnswerText, IsReadBackInTheFormOfEveryTemplate) {
  std::size_t templates = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_data() + "/chat/templates")) {
    std::ifstream stream(entry.path());
    std::stringstream source;
    source << stream.rdbuf();
    const std::string name = entry.path().stem().string();
    const auto chat = text::ChatTemplate::parse(name, source.str(), {"<s>", "</s>"});
    ASSERT_TRUE(chat.ok()) << name;
    const auto found = find_form(chat.value());
    ASSERT_TRUE(found.ok()) << name;
    // These templates show one call a message alone, so that nothing stands between two.
    if (name == "llama3.2" || name == "vllm_llama3.1_json") continue;
    if (found.value().unreadable_calls) continue;
    expect_round_trip(name, found.value().form);
    ++templates;
  }
  EXPECT_GT(templates, 50U);
}

// The texts that a constrained decoder is given, with arguments between them, are a call.
TEST(AnswerText, LiteralsAroundArgumentsMakeACall) {
  for (const KnownToolForm& known : known_tool_forms()) {
    if (known.channels) continue;
    const CallLiterals literals = call_literals(known.calls, "stop");
    if (literals.arguments != ArgumentSyntax::kJson) continue;
    AnswerForm form;
    form.calls = known.calls;
    const std::string text = known.calls.section_begin + literals.begin + R"({"a": [1, 2]})" +
                             literals.end + known.calls.section_end;
    const Reading read = read_pieces(form, order_schemas(), {}, {std::string_view(text)});
    EXPECT_EQ(read, (Reading{"", "", {{"stop", R"({"a": [1, 2]})"}}})) << known.names.front();
  }
}

}  // namespace
}  // namespace pagoda::chat
