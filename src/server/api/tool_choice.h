// The tools of a chat that its answer may or must call: `tool_choice`, `parallel_tool_calls` and
// `strict`.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

struct ChosenTool {
  std::string name;
  const Json* parameters = nullptr;  // of the body; nullptr: the tool has none
  bool strict = false;
  std::string path;  // of its parameters
};

struct ToolChoice {
  enum class Mode : std::uint8_t { kNone, kAuto, kRequired };

  Mode mode = Mode::kAuto;
  bool single = false;            // there is at most one call
  bool narrowed = false;          // some of the request's tools are left out
  std::vector<ChosenTool> tools;  // those that may be called, in the order of `tools`

  // Whether the answer needs a grammar, so that its calls are as they must be, also where the model
  // knows the form of calls.
  bool needs_grammar() const;
};

// Reads "none", "auto", "required", a named function and allowed_tools, in the form of chats or of
// Responses. Throws ApiError: for a choice of a tool that is not there, too.
ToolChoice read_tool_choice(const Fields& fields);

}  // namespace pagoda::server
