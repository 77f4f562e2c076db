#include "server/api/tool_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/api/message_fields.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

using Names = std::set<std::string, std::less<>>;

std::vector<ChosenTool> list_tools(const Fields& fields) {
  check_tools(fields);
  std::vector<ChosenTool> tools;
  const Json* const given = fields.array("tools");
  for (std::size_t i = 0; given != nullptr && i < given->size(); ++i) {
    const Fields tool((*given)[i], element_path(fields.path_of("tools"), i));
    const Json* const nested = tool.object("function");
    if (nested == nullptr) continue;
    const Fields function(*nested, tool.path_of("function"));
    tools.push_back({.name = std::string(function.required_text("name")),
                     .parameters = function.object("parameters"),
                     .strict = function.boolean("strict").value_or(false),
                     .path = function.path_of("parameters")});
  }
  return tools;
}

[[noreturn]] void refuse_choice(const std::string& path, std::string_view what) {
  throw ApiError(400, fmt::format("{}: {}", path, what), path);
}

// {"type": "function", "function": {"name": …}}, or with the name beside the type as in Responses.
std::string named_tool(const Fields& choice) {
  const Json* const nested = choice.object("function");
  if (nested == nullptr && choice.find("name") == nullptr) choice.require("function");
  if (nested == nullptr) return std::string(choice.required_text("name"));
  return std::string(Fields(*nested, choice.path_of("function")).required_text("name"));
}

// Keeps the tools with these names, each of which must be there.
void keep_named(const Names& names, const std::string& path, ToolChoice& choice) {
  std::set<std::string_view> there;
  for (const ChosenTool& tool : choice.tools) there.insert(tool.name);
  for (const std::string& name : names) {
    if (!there.contains(name))
      refuse_choice(path, fmt::format("no tool has the name \"{}\"", name));
  }
  const std::size_t all = choice.tools.size();
  std::erase_if(choice.tools, [&](const ChosenTool& tool) { return !names.contains(tool.name); });
  choice.narrowed = choice.tools.size() < all;
}

void set_mode(std::string_view mode, const std::string& path, ToolChoice& choice) {
  if (mode == "none") {
    choice.mode = ToolChoice::Mode::kNone;
  } else if (mode == "auto") {
    choice.mode = ToolChoice::Mode::kAuto;
  } else if (mode == "required") {
    choice.mode = ToolChoice::Mode::kRequired;
  } else {
    refuse_choice(path, fmt::format("is \"{}\", expected none, auto or required", mode));
  }
}

// {"mode": "auto", "tools": [{"type": "function", "function": {"name": …}}]}
void read_allowed(const Fields& allowed, ToolChoice& choice) {
  const std::string_view mode = allowed.required_text("mode");
  if (mode == "none")
    refuse_choice(allowed.path_of("mode"), "is \"none\", expected auto or required");
  set_mode(mode, allowed.path_of("mode"), choice);
  allowed.require("tools");
  const Json* const tools = read_objects(allowed, "tools");
  const std::string path = allowed.path_of("tools");
  Names names;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Fields tool((*tools)[i], element_path(path, i));
    // Tools of other types run on OpenAI's servers: they are in no request's tools here.
    if (tool.text("type").value_or("function") == "function") names.insert(named_tool(tool));
  }
  if (names.empty()) refuse_choice(path, "expected at least one function");
  keep_named(names, path, choice);
}

}  // namespace

bool ToolChoice::needs_grammar() const {
  if (mode == Mode::kNone || tools.empty()) return false;
  return mode == Mode::kRequired || narrowed ||
         std::any_of(tools.begin(), tools.end(),
                     [](const ChosenTool& tool) { return tool.strict; });
}

ToolChoice read_tool_choice(const Fields& fields) {
  ToolChoice choice = {.tools = list_tools(fields)};
  choice.single = !fields.boolean("parallel_tool_calls").value_or(true);
  const Json* const given = fields.find("tool_choice");
  if (given == nullptr) return choice;
  const std::string path = fields.path_of("tool_choice");
  if (given->is_string()) {
    set_mode(given->get_ref<const std::string&>(), path, choice);
  } else if (given->is_object()) {
    const Fields members(*given, path);
    const std::string_view type = members.required_text("type");
    if (type == "function") {
      choice.mode = ToolChoice::Mode::kRequired;
      choice.single = true;
      keep_named({named_tool(members)}, path, choice);
    } else if (type == "allowed_tools") {
      const Json* const nested = members.object("allowed_tools");
      read_allowed(nested == nullptr ? members : Fields(*nested, members.path_of("allowed_tools")),
                   choice);
    } else {
      throw ApiError(400,
                     fmt::format("{}: \"{}\" is not supported, except function and allowed_tools",
                                 members.path_of("type"), type),
                     members.path_of("type"), "unsupported_parameter");
    }
  } else {
    refuse_type(path, *given, "a string or an object");
  }
  if (choice.mode == ToolChoice::Mode::kRequired && choice.tools.empty()) {
    refuse_choice(path, "needs tools, of which the request has none");
  }
  return choice;
}

}  // namespace pagoda::server
