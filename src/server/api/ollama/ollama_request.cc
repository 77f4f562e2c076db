#include "server/api/ollama/ollama_request.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "server/api/message_fields.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server::ollama {
namespace {

// Chats name them alike, except for those that are renamed below.
constexpr std::array<const char*, 9> kOptions = {
    "temperature",       "top_k",          "top_p",    "min_p", "seed", "presence_penalty",
    "frequency_penalty", "repeat_penalty", "typical_p"};

constexpr std::array kOllamaNames = {FieldName{"stop", "options.stop"},
                                     FieldName{"temperature", "options.temperature"},
                                     FieldName{"top_k", "options.top_k"},
                                     FieldName{"top_p", "options.top_p"},
                                     FieldName{"min_p", "options.min_p"},
                                     FieldName{"seed", "options.seed"},
                                     FieldName{"presence_penalty", "options.presence_penalty"},
                                     FieldName{"frequency_penalty", "options.frequency_penalty"},
                                     FieldName{"repeat_penalty", "options.repeat_penalty"},
                                     FieldName{"typical_p", "options.typical_p"},
                                     FieldName{"response_format.json_schema.schema", "format"},
                                     FieldName{"response_format.type", "format"},
                                     FieldName{"reasoning_effort", "think"}};

void take_options(Json& body, TranslatedChat& chat) {
  const Json* const options = Fields(body).object("options");
  if (options == nullptr) return;
  const Fields fields(*options, "options");
  // Negative numbers stand for no limit.
  const auto tokens = fields.integer("num_predict", -2, INT32_MAX);
  if (tokens && *tokens > 0) chat.tokens_max = static_cast<std::uint32_t>(*tokens);
  Json& given = body["options"];
  for (const char* const name : kOptions) {
    if (fields.find(name) != nullptr) chat.body[name] = std::move(given[name]);
  }
  if (fields.find("stop") != nullptr) chat.body["stop"] = std::move(given["stop"]);
}

// "json", or a schema.
void take_format(Json& body, Json& chat) {
  const auto found = body.find("format");
  if (found == body.end() || found->is_null() || *found == "") return;
  if (found->is_object()) {
    Json schema = {{"name", "format"}};
    schema["schema"] = std::move(*found);
    chat["response_format"] = {{"type", "json_schema"}};
    chat["response_format"]["json_schema"] = std::move(schema);
  } else if (*found == "json") {
    chat["response_format"] = {{"type", "json_object"}};
  } else {
    refuse_type("format", *found, "\"json\" or a schema");
  }
}

void read_think(const Fields& fields, Json& chat) {
  const Json* const think = fields.find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) {
    chat["enable_thinking"] = *think;
  } else if (think->is_string()) {
    chat["reasoning_effort"] = *think;
  } else {
    refuse_type("think", *think, "true, false or a string");
  }
}

void refuse_images(const Fields& fields) {
  const Json* const images = fields.array("images");
  if (images == nullptr || images->empty()) return;
  const std::string path = fields.path_of("images");
  throw ApiError(400, fmt::format("{}: is not supported", path), path, "unsupported_parameter");
}

// Gives calls the ids that Ollama's messages lack, and results those of the calls before them, in
// order. Templates that print ids want nine letters or digits.
class CallIds {
 public:
  void add(Json& message) {
    const auto calls = message.find("tool_calls");
    if (calls != message.end() && calls->is_array()) {
      for (Json& call : *calls) {
        if (call.is_object() && !call.contains("id")) call["id"] = id_of(calls_++);
      }
    }
    if (message.value("role", Json()) != "tool" || message.contains("tool_call_id")) return;
    if (results_ < calls_) message["tool_call_id"] = id_of(results_++);
  }

 private:
  static std::string id_of(std::uint32_t number) { return fmt::format("call{:05}", number); }

  std::uint32_t calls_ = 0;
  std::uint32_t results_ = 0;
};

// Chats check the rest: their messages are Ollama's but for ids and images.
Json take_messages(Json& body) {
  const Fields fields(body);
  fields.require("messages");
  read_objects(fields, "messages");
  Json& messages = body["messages"];
  CallIds ids;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    refuse_images(Fields(messages[i], element_path("messages", i)));
    messages[i].erase("images");
    ids.add(messages[i]);
  }
  return std::move(messages);
}

// Streams unless told otherwise.
TranslatedChat translate(Json& body) {
  const Fields fields(body);
  TranslatedChat chat;
  chat.names = kOllamaNames;
  chat.body["stream"] = fields.boolean("stream").value_or(true);
  take_options(body, chat);
  take_format(body, chat.body);
  read_think(fields, chat.body);
  return chat;
}

void refuse_field(const Fields& fields, const char* name, std::string_view why) {
  const Json* const value = fields.find(name);
  if (value == nullptr || *value == false || value->empty() || *value == "") return;
  throw ApiError(400, fmt::format("{}: {}", name, why), name, "unsupported_parameter");
}

}  // namespace

TranslatedChat chat_of_chat(Json body) {
  TranslatedChat chat = translate(body);
  chat.body["messages"] = take_messages(body);
  if (Fields(body).array("tools") != nullptr) chat.body["tools"] = std::move(body["tools"]);
  return chat;
}

TranslatedChat chat_of_generate(Json body) {
  const Fields fields(body);
  refuse_field(fields, "raw", "is not supported here; /v1/completions takes prompts as they are");
  refuse_field(fields, "context", "is not supported; /api/chat takes conversations");
  refuse_field(fields, "suffix", "is not supported");
  refuse_field(fields, "template", "is not supported; the server has a chat template");
  refuse_images(fields);
  fields.required_text("prompt");
  TranslatedChat chat = translate(body);
  Json messages = Json::array();
  if (fields.text("system")) {
    messages.push_back({{"role", "system"}, {"content", std::move(body["system"])}});
  }
  messages.push_back({{"role", "user"}, {"content", std::move(body["prompt"])}});
  chat.body["messages"] = std::move(messages);
  return chat;
}

}  // namespace pagoda::server::ollama
