// Forms of answers by the names of vLLM's parsers: those that --tool-call-parser and
// --reasoning-parser choose, and those of families whose template does not show its tool calls.
// Each is a file of src/chat/forms, which the build puts into the program (form_file.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_form.h"

namespace pagoda::chat {

struct KnownToolForm {
  std::vector<std::string> names;  // vLLM's names of its tool parser
  ToolCallForm calls;
  // A template that has all texts of one of these lists writes calls so, if deriving finds nothing;
  // empty: the form is chosen by name alone.
  std::vector<std::vector<std::string>> signs = {};
  bool sure = false;  // the signs decide even where deriving finds a form
  bool channels = false;
  CallIdStyle ids = CallIdStyle::kAny;
};

struct KnownReasoningForm {
  std::vector<std::string> names;  // vLLM's names of its reasoning parser
  ReasoningForm reasoning;
  bool channels = false;
};

// In the order in which signs are looked for: the list of src/chat/CMakeLists.txt.
std::span<const KnownToolForm> known_tool_forms();
std::span<const KnownReasoningForm> known_reasoning_forms();

// Return nullptr for an unknown name.
const KnownToolForm* find_tool_form(std::string_view name);
const KnownReasoningForm* find_reasoning_form(std::string_view name);

// All names, sorted: "deepseek_v3, deepseek_v31, …".
std::string list_tool_forms();
std::string list_reasoning_forms();

// {"tool_call": {"name": …, "arguments": {…}}}: the form of models whose template has no place for
// tools.
const ToolCallForm& generic_tool_form();

}  // namespace pagoda::chat
