#include "chat/history_calls.h"

#include <string>
#include <vector>

#include "chat/answer_text.h"

namespace pagoda::chat {
namespace {

using text::ChatJson;

WrittenCall read_history_call(const ChatJson& call) {
  const auto nested = call.is_object() ? call.find("function") : call.end();
  const ChatJson& function = call.is_object() && nested != call.end() ? *nested : call;
  WrittenCall written;
  if (!function.is_object()) return written;
  if (const auto name = function.find("name"); name != function.end() && name->is_string()) {
    written.name = name->get<std::string>();
  }
  const auto arguments = function.find("arguments");
  if (arguments == function.end()) return written;
  if (arguments->is_string()) {
    written.raw = arguments->get<std::string>();
    written.arguments = ChatJson::parse(written.raw, nullptr, false);
    if (!written.arguments.is_object()) written.arguments = ChatJson::object();
  } else if (arguments->is_object()) {
    written.arguments = *arguments;
  }
  return written;
}

}  // namespace

void write_history_calls(const ToolCallForm& form, ChatJson& messages) {
  for (ChatJson& message : messages) {
    const auto calls = message.is_object() ? message.find("tool_calls") : message.end();
    if (!message.is_object() || calls == message.end() || !calls->is_array() || calls->empty()) {
      continue;
    }
    std::vector<WrittenCall> written;
    for (const ChatJson& call : *calls) written.push_back(read_history_call(call));
    message.erase("tool_calls");
    const std::string text = write_calls(form, written);
    ChatJson& content = message["content"];
    if (content.is_array()) {
      content.push_back({{"type", "text"}, {"text", text}});
    } else if (content.is_string() && !content.get_ref<const std::string&>().empty()) {
      content = content.get<std::string>() + form.before + text;
    } else {
      content = text;
    }
  }
}

}  // namespace pagoda::chat
