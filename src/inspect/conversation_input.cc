#include "inspect/conversation_input.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gguf/printable.h"

namespace pagoda::inspect {
namespace {

Error invalid(std::string reason) {
  return {ErrorCode::kInvalidArgument, "`chat`: " + std::move(reason)};
}

}  // namespace

Result<text::Conversation> parse_conversation(std::string_view json) {
  text::ChatJson parsed = text::ChatJson::parse(json, nullptr, false);
  if (parsed.is_discarded()) return invalid("the input is not JSON");
  text::Conversation conversation;
  if (parsed.is_array()) {
    conversation.messages = std::move(parsed);
    return conversation;
  }
  if (!parsed.is_object()) return invalid("the input is no array of messages");
  for (auto& [key, value] : parsed.items()) {
    const bool flag = key == "add_generation_prompt" || key == "continue_final_message";
    if (flag && !value.is_boolean()) return invalid(fmt::format("{} is no boolean", key));
    if (key == "messages") {
      conversation.messages = std::move(value);
    } else if (key == "tools") {
      conversation.tools = std::move(value);
    } else if (key == "documents") {
      conversation.documents = std::move(value);
    } else if (key == "chat_template_kwargs") {
      conversation.kwargs = std::move(value);
    } else if (key == "add_generation_prompt") {
      conversation.add_generation_prompt = value;
    } else if (key == "continue_final_message") {
      conversation.continue_final_message = value;
    } else {
      return invalid(fmt::format("unknown key '{}'", gguf::printable(key, 60)));
    }
  }
  return conversation;
}

}  // namespace pagoda::inspect
