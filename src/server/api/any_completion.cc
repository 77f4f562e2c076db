#include "server/api/any_completion.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server/api/anthropic/messages_request.h"
#include "server/api/responses/responses_request.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// The elements of an array member; none where there is no array.
const Json& elements(const Json& object, const char* name) {
  static const Json kNone = Json::array();
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : kNone;
}

bool is_anthropic_tool(const Json& tool) {
  return tool.is_object() && tool.contains("input_schema");
}

bool is_anthropic_block(const Json& block) {
  constexpr std::array<std::string_view, 4> kTypes = {"tool_use", "tool_result", "thinking",
                                                      "redacted_thinking"};
  const auto type = block.is_object() ? block.find("type") : block.end();
  if (type == block.end() || !type->is_string()) return false;
  return std::find(kTypes.begin(), kTypes.end(), type->get_ref<const std::string&>()) !=
         kTypes.end();
}

bool is_anthropic(const Json& body) {
  if (Fields(body).find("system") != nullptr) return true;
  const Json& tools = elements(body, "tools");
  if (std::any_of(tools.begin(), tools.end(), is_anthropic_tool)) return true;
  const Json& messages = elements(body, "messages");
  return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    const Json& blocks = elements(message, "content");
    return std::any_of(blocks.begin(), blocks.end(), is_anthropic_block);
  });
}

}  // namespace

CompletionRequest read_any_completion(Json body, const ServedModel& model,
                                      const ReadingTerms& terms) {
  const Fields fields(body);
  if (fields.find("messages") != nullptr) {
    if (!is_anthropic(body)) return read_chat_request(std::move(body), model, terms);
    return read_translated(anthropic::chat_of_counted_messages(std::move(body), &terms.memory),
                           model, terms);
  }
  if (fields.find("prompt") == nullptr && fields.find("input") != nullptr) {
    return read_translated(responses::chat_of_responses(std::move(body), &terms.memory), model,
                           terms);
  }
  return read_text_request(body, model, terms);
}

}  // namespace pagoda::server
