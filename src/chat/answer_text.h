// Writes an answer as a model of this form would: the inverse of answer_parser.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chat/answer_form.h"

namespace pagoda::chat {

struct WrittenCall {
  std::string name;
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::string raw = {};  // the arguments as JSON text, where they are to be written so
};

struct WrittenAnswer {
  std::string reasoning = {};
  std::string content = {};
  std::vector<WrittenCall> calls = {};
};

// `in_reasoning`: the prompt has opened the reasoning. JSON has a blank behind commas and colons,
// as templates write it.
std::string write_answer(const AnswerForm& form, const WrittenAnswer& answer, bool in_reasoning);

// Writes a section of calls with its markers.
std::string write_calls(const ToolCallForm& form, const std::vector<WrittenCall>& calls);

// JSON with a blank behind commas and colons.
std::string spaced_json(const nlohmann::ordered_json& value);

}  // namespace pagoda::chat
