#include "server/api/any_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server/api/anthropic/messages_request.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/responses/responses_request.h"
#include "server/api_error.h"
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

bool has_member(const Json& body, const char* object, const char* name) {
  const Json* const found = Fields(body).find(object);
  return found != nullptr && found->is_object() && Fields(*found, object).find(name) != nullptr;
}

// Members that chats have and Anthropic's messages have not.
bool is_chat(const Json& body) {
  constexpr std::array<const char*, 8> kMembers = {"max_completion_tokens",
                                                   "response_format",
                                                   "stream_options",
                                                   "reasoning_effort",
                                                   "n",
                                                   "logprobs",
                                                   "stop",
                                                   "parallel_tool_calls"};
  const Fields fields(body);
  return std::any_of(kMembers.begin(), kMembers.end(),
                     [&](const char* name) { return fields.find(name) != nullptr; });
}

bool has_anthropic_content(const Json& body) {
  const Fields fields(body);
  if (fields.find("system") != nullptr) return true;
  const Json& tools = elements(body, "tools");
  if (std::any_of(tools.begin(), tools.end(), is_anthropic_tool)) return true;
  const Json& messages = elements(body, "messages");
  return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    const Json& blocks = elements(message, "content");
    return std::any_of(blocks.begin(), blocks.end(), is_anthropic_block);
  });
}

bool is_anthropic_body(const Json& body) {
  if (has_anthropic_content(body)) return true;
  const Fields fields(body);
  if (fields.find("stop_sequences") != nullptr || fields.find("output_config") != nullptr) {
    return true;
  }
  if (has_member(body, "thinking", "budget_tokens")) return true;
  return has_member(body, "metadata", "user_id") && !is_chat(body);
}

enum class Api : std::uint8_t { kText, kChat, kResponses, kMessages, kOllamaChat, kOllamaGenerate };

struct NamedApi {
  std::string_view path;
  Api api;
};

constexpr std::array<NamedApi, 6> kApis = {{{"/v1/completions", Api::kText},
                                            {"/v1/chat/completions", Api::kChat},
                                            {"/v1/responses", Api::kResponses},
                                            {"/v1/messages", Api::kMessages},
                                            {"/api/chat", Api::kOllamaChat},
                                            {"/api/generate", Api::kOllamaGenerate}}};

Api named_api(std::string_view name) {
  constexpr std::string_view kVersion = "/v1/";
  for (const NamedApi& one : kApis) {
    const bool is_short =
        one.path.starts_with(kVersion) && one.path.substr(kVersion.size()) == name;
    if (one.path == name || is_short) return one.api;
  }
  throw ApiError(400,
                 fmt::format("api: is \"{}\", expected completions, chat/completions, responses, "
                             "messages, /api/chat or /api/generate",
                             name.substr(0, 64)),
                 "api");
}

Api api_of(const Json& body, bool is_anthropic) {
  const Fields fields(body);
  if (const auto name = fields.text("api")) return named_api(*name);
  if (fields.find("messages") != nullptr) {
    return is_anthropic || is_anthropic_body(body) ? Api::kMessages : Api::kChat;
  }
  const bool is_response = fields.find("prompt") == nullptr && fields.find("input") != nullptr;
  return is_response ? Api::kResponses : Api::kText;
}

}  // namespace

CompletionRequest read_any_completion(Json body, bool is_anthropic, const ServedModel& model,
                                      const ReadingTerms& terms) {
  const Api api = api_of(body, is_anthropic);
  body.erase("api");
  ReadingMemory* const memory = &terms.memory;
  switch (api) {
    case Api::kChat:
      return read_chat_request(std::move(body), model, terms);
    case Api::kMessages:
      return read_translated(anthropic::chat_of_counted_messages(std::move(body), memory), model,
                             terms);
    case Api::kResponses:
      return read_translated(responses::chat_of_responses(std::move(body), memory), model, terms);
    case Api::kOllamaChat:
      return read_translated(ollama::chat_of_chat(std::move(body), memory), model, terms);
    case Api::kOllamaGenerate:
      return read_translated(ollama::chat_of_generate(std::move(body), memory), model, terms);
    case Api::kText:
      break;
  }
  return read_text_request(body, model, terms);
}

}  // namespace pagoda::server
