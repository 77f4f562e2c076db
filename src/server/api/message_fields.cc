#include "server/api/message_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "chat/call_reader.h"
#include "server/api_error.h"
#include "text/abbreviated.h"

namespace pagoda::server {
namespace {

constexpr std::array<std::string_view, 8> kRoleNames = {"system", "developer", "user",  "assistant",
                                                        "tool",   "function",  "model", "ipython"};

void check_part(const Json& part, const std::string& path) {
  const Fields fields(part, path);
  fields.require("type");
  if (fields.text("type") != "text") {
    const std::string type_path = fields.path_of("type");
    throw ApiError(400,
                   fmt::format("{}: \"{}\" is not supported, only \"text\" is", type_path,
                               *fields.text("type")),
                   type_path, "unsupported_parameter");
  }
  fields.require("text");
  fields.text("text");
}

// An assistant's message may be a call, or nothing.
void check_content(const Fields& message, bool is_answer) {
  const Json* const content = message.find("content");
  if (content == nullptr && !is_answer) message.require("content");
  if (content == nullptr || content->is_string()) return;
  const std::string path = message.path_of("content");
  if (!content->is_array()) refuse_type(path, *content, "a string or an array of parts");
  for (std::size_t i = 0; i < content->size(); ++i) {
    check_part((*content)[i], element_path(path, i));
  }
}

// Remembers the calls that tools' results may answer.
class CallHistory {
 public:
  void add_calls(const Fields& message) {
    const Json* const calls = read_objects(message, "tool_calls");
    for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
      add_call(Fields((*calls)[i], element_path(message.path_of("tool_calls"), i)));
    }
    if (message.find("function_call") == nullptr) return;
    const std::string path = message.path_of("function_call");
    throw ApiError(400, fmt::format("{}: is not supported; send \"tool_calls\"", path), path,
                   "unsupported_parameter");
  }

  void check_result(const Fields& message, const std::string& path) const {
    const auto id = message.text("tool_call_id");
    if (!any_) {
      throw ApiError(400, fmt::format("{}: a tool's result without a call before it", path), path);
    }
    if (!id || without_id_ || ids_.find(*id) != ids_.end()) return;
    const std::string id_path = message.path_of("tool_call_id");
    throw ApiError(400,
                   fmt::format("{}: no call of an earlier message has the id \"{}\"", id_path, *id),
                   id_path);
  }

 private:
  void add_call(const Fields& call) {
    any_ = true;
    call.text("type");
    if (const auto id = call.text("id")) {
      ids_.emplace(*id);
    } else {
      without_id_ = true;
    }
    const Json* const nested = call.object("function");
    if (nested == nullptr) return;
    const Fields function(*nested, call.path_of("function"));
    function.require("name");
    function.text("name");
    const Json* const arguments = function.find("arguments");
    if (arguments != nullptr && !arguments->is_string() && !arguments->is_object()) {
      refuse_type(function.path_of("arguments"), *arguments, "a string of JSON or an object");
    }
  }

  bool any_ = false;
  bool without_id_ = false;
  std::set<std::string, std::less<>> ids_;
};

void check_message(const Json& message, const std::string& path, CallHistory& history) {
  const Fields fields(message, path);
  fields.require("role");
  const std::string_view role = *fields.text("role");
  if (std::find(kRoleNames.begin(), kRoleNames.end(), role) == kRoleNames.end()) {
    throw ApiError(400,
                   fmt::format("{}: unknown role \"{}\", expected system, developer, user, "
                               "assistant or tool",
                               fields.path_of("role"), role),
                   fields.path_of("role"));
  }
  for (const char* const name : {"reasoning_content", "reasoning", "thinking"}) fields.text(name);
  history.add_calls(fields);
  if (role == "tool" || role == "function") history.check_result(fields, path);
  check_content(fields, role == "assistant" || role == "model");
}

// Names that no reader of calls takes would make a call that is asked for come back as text.
void check_tool_name(const Fields& function, std::set<std::string_view>& names) {
  const std::string_view name = function.required_text("name");
  const std::string path = function.path_of("name");
  if (!chat::is_tool_name(name)) {
    throw ApiError(400,
                   fmt::format("{}: \"{}\" is no name of a tool, expected letters, digits, _ and -",
                               path, text::abbreviated(std::string(name), 100)),
                   path);
  }
  if (!names.insert(name).second) {
    throw ApiError(400, fmt::format("{}: another tool has the name \"{}\"", path, name), path);
  }
}

}  // namespace

const Json* read_objects(const Fields& fields, std::string_view name) {
  const Json* const array = fields.array(name);
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if ((*array)[i].is_object()) continue;
    refuse_type(element_path(fields.path_of(name), i), (*array)[i], "an object");
  }
  return array;
}

void check_messages(const Fields& fields) {
  fields.require("messages");
  const Json& messages = *fields.array("messages");
  if (messages.empty()) {
    throw ApiError(400, "messages: is empty, expected at least one", "messages");
  }
  CallHistory history;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check_message(messages[i], element_path("messages", i), history);
  }
}

void check_tools(const Fields& fields) {
  const Json* const tools = read_objects(fields, "tools");
  std::set<std::string_view> names;
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const Fields tool((*tools)[i], element_path(fields.path_of("tools"), i));
    const auto type = tool.text("type");
    const Json* const function = tool.object("function");
    if (type && type != "function") {
      const std::string path = tool.path_of("type");
      throw ApiError(400,
                     fmt::format("{}: \"{}\" is not supported, only \"function\" is", path,
                                 text::abbreviated(std::string(*type), 100)),
                     path, "unsupported_parameter");
    }
    if (function == nullptr) tool.require("function");
    const Fields named(*function, tool.path_of("function"));
    check_tool_name(named, names);
    named.text("description");
    named.boolean("strict");
    named.object("parameters");
  }
}

}  // namespace pagoda::server
