// Answers and what is read from them, for tables of cases.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "chat/known_forms.h"
#include "chat/reading.h"

namespace pagoda::chat {

struct ParserCase {
  std::string label;
  std::string tools;      // a name of known_tool_forms(); empty: none
  std::string reasoning;  // likewise
  std::string text;
  Reading expected;
  bool in_reasoning = false;
};

inline const ReadCall kRome = {"get_weather", R"({"city": "Rome", "days": 2})"};
inline const ReadCall kAdd = {"add", R"({"a": 1})"};

inline ToolSchemas weather_schemas() {
  return ToolSchemas(nlohmann::ordered_json::parse(R"([
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
                     "more": {}}}}},
    {"type": "function", "function": {"name": "add"}}])"));
}

inline AnswerForm form_of(const ParserCase& one) {
  AnswerForm form;
  if (!one.tools.empty()) {
    const KnownToolForm* const known = find_tool_form(one.tools);
    EXPECT_NE(known, nullptr) << one.tools;
    form.calls = known->calls;
    form.channels = known->channels;
  }
  if (!one.reasoning.empty()) form.reasoning = find_reasoning_form(one.reasoning)->reasoning;
  return form;
}

// Reads the text whole and cut in many ways.
inline void expect_reading(const ParserCase& one) {
  const AnswerForm form = form_of(one);
  const ToolSchemas schemas = weather_schemas();
  const AnswerOptions options = {.in_reasoning = one.in_reasoning};
  const auto check = [&](const std::vector<std::string_view>& pieces, const std::string& how) {
    const Reading read = read_pieces(form, schemas, options, pieces);
    EXPECT_EQ(read.reasoning, one.expected.reasoning) << one.label << ", " << how;
    EXPECT_EQ(read.content, one.expected.content) << one.label << ", " << how;
    ASSERT_EQ(read.calls.size(), one.expected.calls.size()) << one.label << ", " << how;
    for (std::size_t i = 0; i < read.calls.size(); ++i) {
      EXPECT_EQ(read.calls[i].name, one.expected.calls[i].name) << one.label << ", " << how;
      EXPECT_EQ(read.calls[i].arguments, one.expected.calls[i].arguments)
          << one.label << ", " << how;
    }
  };
  check({one.text}, "whole");
  const std::vector<std::size_t> edges = character_edges(one.text);
  check(cut_at(one.text, edges), "a character at a time");
  for (const std::size_t edge : edges) {
    check(cut_at(one.text, {edge}), "cut at " + std::to_string(edge));
    if (testing::Test::HasFailure()) return;
  }
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::size_t> some;
    for (const std::size_t edge : edges) {
      if (random() % 4 == 0) some.push_back(edge);
    }
    check(cut_at(one.text, some), "cut at random");
  }
}

}  // namespace pagoda::chat
