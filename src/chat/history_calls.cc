#include "chat/history_calls.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "chat/answer_text.h"
#include "text/strict_json.h"

namespace pagoda::chat {
namespace {

using text::ChatJson;

constexpr std::size_t kArgumentsBytesMax = std::size_t{1} << 20;

// Arguments that came as text and are no JSON object are taken for none where the form does not
// write JSON.
Result<WrittenCall> read_history_call(const ChatJson& call) {
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
    if (written.raw.size() > kArgumentsBytesMax) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("more than {} bytes of arguments", kArgumentsBytesMax)};
    }
    Result<ChatJson> parsed = text::parse_strict_json(written.raw);
    written.arguments = ChatJson::object();
    if (parsed.ok() && parsed.value().is_object()) {
      written.arguments = std::move(parsed).value();
    }
  } else if (arguments->is_object()) {
    written.arguments = *arguments;
  }
  return written;
}

}  // namespace

Status write_history_calls(const ToolCallForm& form, ChatJson& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ChatJson& message = messages[i];
    const auto calls = message.is_object() ? message.find("tool_calls") : message.end();
    if (!message.is_object() || calls == message.end() || !calls->is_array() || calls->empty()) {
      continue;
    }
    std::vector<WrittenCall> written;
    for (std::size_t j = 0; j < calls->size(); ++j) {
      Result<WrittenCall> call = read_history_call((*calls)[j]);
      if (!call.ok()) {
        return Error{call.error().code,
                     fmt::format("messages[{}].tool_calls[{}].function.arguments: {}", i, j,
                                 call.error().message)};
      }
      written.push_back(std::move(call).value());
    }
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
  return ok_status();
}

}  // namespace pagoda::chat
