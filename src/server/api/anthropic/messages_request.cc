#include "server/api/anthropic/messages_request.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/api/cache_marks.h"
#include "server/api/chat_history.h"
#include "server/api/function_tools.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server::anthropic {
namespace {

constexpr auto kMessagesFields = std::to_array<std::string_view>({
    "betas",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "system",
    "thinking",
    "tool_choice",
    "tools",
});

[[noreturn]] void refuse_block(const Fields& block, std::string_view expected) {
  const std::string path = block.path_of("type");
  throw ApiError(
      400, fmt::format("{}: \"{}\" is not supported, only {}", path, *block.text("type"), expected),
      path, "unsupported_parameter");
}

// Takes the text out of a block of type "text".
Json take_text(Json& block, const Fields& fields) {
  fields.require("text");
  fields.text("text");
  return std::move(block["text"]);
}

std::string_view type_of_block(const Fields& block) {
  block.require("type");
  return *block.text("type");
}

// The content of a system prompt or of a tool's result as a chat's: a string, or text parts.
Json take_text_content(Json& content, const std::string& path, TranslationMemory& memory) {
  if (content.is_string()) return std::move(content);
  if (!content.is_array()) refuse_type(path, content, "a string or an array of blocks");
  Json parts = Json::array();
  for (std::size_t i = 0; i < content.size(); ++i) {
    memory.add(kTranslatedBytes);
    const Fields block(content[i], element_path(path, i));
    if (type_of_block(block) != "text") refuse_block(block, "\"text\" is");
    read_mark(block);
    parts.push_back({{"type", "text"}, {"text", take_text(content[i], block)}});
    copy_mark(content[i], parts.back());
  }
  if (parts.size() == 1 && parts.front().size() == 2) return std::move(parts.front()["text"]);
  return parts.empty() ? Json("") : parts;
}

// The state of translating one message into the history of a chat.
struct Translation {
  ChatHistory& history;
  TranslationMemory& memory;
  std::string path = {};  // of the message
};

// Adds what take_text_content() returned to the message that is open.
void add_texts(Json content, ChatHistory& history) {
  if (content.is_string()) return history.add_text(std::move(content));
  for (Json& part : content) {
    history.add_text(std::move(part["text"]));
    history.mark(part);
  }
}

// Gives the mark of a block, which was added last, to the history.
void mark_block(const Json& block, const std::string& path, ChatHistory& history) {
  read_mark(Fields(block, path));
  history.mark(block);
}

void add_tool_use(Json& block, const Fields& fields, const std::string& path,
                  ChatHistory& history) {
  const std::string_view id = fields.required_text("id");
  const std::string_view name = fields.required_text("name");
  fields.require("input");
  fields.object("input");
  history.add_call(id, name, std::move(block["input"]), path);
}

void add_assistant_block(Json& block, const std::string& path, const Translation& to) {
  const Fields fields(block, path);
  to.history.open("assistant", true, to.path);
  const std::string_view type = type_of_block(fields);
  if (type == "text") {
    to.history.add_text(take_text(block, fields));
  } else if (type == "thinking") {
    // Its signature is ours or another server's: nothing depends on it.
    fields.text("signature");
    to.history.add_reasoning(fields.required_text("thinking"));
  } else if (type == "tool_use") {
    add_tool_use(block, fields, path, to.history);
  } else if (type != "redacted_thinking") {  // which nobody here can read
    refuse_block(fields, "\"text\", \"thinking\", \"redacted_thinking\" and \"tool_use\" are");
  }
}

// A result that reports a failure says so in its first words.
void mark_as_error(Json& content) {
  constexpr std::string_view kError = "Error: ";
  Json& text = content.is_array() ? content.front()["text"] : content;
  text = std::string(kError) + text.get_ref<const std::string&>();
}

void add_result_block(Json& block, const std::string& path, const Translation& to) {
  const Fields fields(block, path);
  const std::string_view id = fields.required_text("tool_use_id");
  const bool is_error = fields.boolean("is_error").value_or(false);
  Json content = "";
  if (fields.find("content") != nullptr) {
    content = take_text_content(block["content"], fields.path_of("content"), to.memory);
  }
  if (is_error) mark_as_error(content);
  to.history.add_result(id, fields.path_of("tool_use_id"), std::move(content), path);
}

void add_user_block(Json& block, const std::string& path, const Translation& to) {
  const Fields fields(block, path);
  if (type_of_block(fields) != "text") refuse_block(fields, "\"text\" and \"tool_result\" are");
  to.history.open("user", true, to.path);
  to.history.add_text(take_text(block, fields));
}

// Results come before words, as templates want them right behind their calls.
void add_user_blocks(Json& content, const std::string& path, const Translation& to) {
  std::vector<bool> is_result(content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string block = element_path(path, i);
    is_result[i] = type_of_block(Fields(content[i], block)) == "tool_result";
    if (!is_result[i]) continue;
    add_result_block(content[i], block, to);
    mark_block(content[i], block, to.history);
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (is_result[i]) continue;
    const std::string block = element_path(path, i);
    add_user_block(content[i], block, to);
    mark_block(content[i], block, to.history);
  }
}

// Messages of one role in a row are one turn.
void add_message(Json& message, const Translation& to) {
  const Fields fields(message, to.path);
  const std::string_view role = fields.required_text("role");
  if (role != "user" && role != "assistant" && role != "system") {
    throw ApiError(400,
                   fmt::format("{}: unknown role \"{}\", expected user, assistant or system",
                               fields.path_of("role"), role),
                   fields.path_of("role"));
  }
  fields.require("content");
  Json& content = message["content"];
  const std::string content_path = fields.path_of("content");
  if (content.is_string() || role == "system") {
    to.history.open(role, true, to.path);
    add_texts(take_text_content(content, content_path, to.memory), to.history);
    return;
  }
  if (!content.is_array()) refuse_type(content_path, content, "a string or an array of blocks");
  if (content.empty()) {
    throw ApiError(400, fmt::format("{}: is empty, expected at least one block", content_path),
                   content_path);
  }
  if (role == "user") return add_user_blocks(content, content_path, to);
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string block = element_path(content_path, i);
    add_assistant_block(content[i], block, to);
    mark_block(content[i], block, to.history);
  }
}

void take_system(Json& body, const Translation& to) {
  Json system = take_text_content(body["system"], "system", to.memory);
  to.history.open("system", false, "system");
  add_texts(std::move(system), to.history);
}

void take_messages(Json& body, TranslationMemory& memory, TranslatedChat& chat) {
  const Fields fields(body);
  ChatHistory history(memory);
  if (fields.find("system") != nullptr) take_system(body, {history, memory});
  fields.require("messages");
  fields.array("messages");
  Json& messages = body["messages"];
  if (messages.empty()) {
    throw ApiError(400, "messages: is empty, expected at least one", "messages");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    add_message(messages[i], {history, memory, element_path("messages", i)});
  }
  // The answer goes on from an assistant's message that stands last.
  if (history.last_role() == "assistant" && !history.last_has_calls()) {
    chat.body["continue_final_message"] = true;
  }
  chat.body["messages"] = history.take();
  chat.paths.messages = history.take_places();
}

void read_tool_choice(const Fields& fields, TranslatedChat& chat) {
  const Json* const given = fields.object("tool_choice");
  if (given == nullptr) return;
  const Fields choice(*given, "tool_choice");
  const std::string_view type = choice.required_text("type");
  if (choice.boolean("disable_parallel_tool_use").value_or(false)) {
    chat.write("parallel_tool_calls", "tool_choice.disable_parallel_tool_use", false);
  }
  if (type == "auto" || type == "none") {
    chat.body["tool_choice"] = type;
  } else if (type == "any") {
    chat.body["tool_choice"] = "required";
  } else if (type == "tool") {
    chat.body["tool_choice"] = {{"type", "function"},
                                {"function", {{"name", choice.required_text("name")}}}};
  } else {
    const std::string path = choice.path_of("type");
    throw ApiError(400, fmt::format("{}: is \"{}\", expected auto, any, tool or none", path, type),
                   path);
  }
}

// {"type": "json_schema", "schema": {…}}
void take_format(Json& format, std::string_view path, TranslatedChat& chat) {
  const Fields asked(format, std::string(path));
  Json response_format = {{"type", asked.required_text("type")}};
  if (asked.object("schema") != nullptr) {
    response_format["json_schema"] = {{"name", "output"}, {"strict", true}};
    response_format["json_schema"]["schema"] = std::move(format["schema"]);
  }
  chat.names.push_back({"response_format.json_schema", path});
  chat.write("response_format", path, std::move(response_format));
}

// {"effort": "high", "format": {…}}; the format has stood in a field of its own before.
void take_output_config(Json& body, TranslatedChat& chat) {
  const Fields fields(body);
  if (fields.object("output_format") != nullptr) {
    take_format(body["output_format"], "output_format", chat);
  }
  const Json* const config = fields.object("output_config");
  if (config == nullptr) return;
  const Fields members(*config, "output_config");
  if (const auto effort = members.text("effort")) {
    chat.write("reasoning_effort", "output_config.effort", *effort);
  }
  if (members.object("format") != nullptr) {
    take_format(body["output_config"]["format"], "output_config.format", chat);
  }
}

void read_stops(Json& body, TranslatedChat& chat) {
  const Fields fields(body);
  const Json* const stops = fields.array("stop_sequences");
  if (stops == nullptr) return;
  for (std::size_t i = 0; i < stops->size(); ++i) {
    if (!(*stops)[i].is_string()) {
      refuse_type(element_path("stop_sequences", i), (*stops)[i], "a string");
    }
  }
  chat.write("stop", "stop_sequences", std::move(body["stop_sequences"]));
}

TranslatedChat translate(Json& body, ReadingMemory* counted) {
  const Fields fields(body);
  TranslationMemory memory(counted);
  TranslatedChat chat;
  chat.paths.arguments = "input";
  chat.too_long = "prompt is too long: ";  // which clients look for
  move_other_fields(body, kMessagesFields, chat.body);
  take_messages(body, memory, chat);
  take_function_tools(body, {.schema = "input_schema", .needs_schema = true, .function = "custom"},
                      memory, chat);
  read_tool_choice(fields, chat);
  take_output_config(body, chat);
  read_stops(body, chat);
  fields.object("metadata");
  if (const Json* const thinking = fields.object("thinking")) chat.body["thinking"] = *thinking;
  return chat;
}

}  // namespace

TranslatedChat chat_of_messages(Json body, ReadingMemory* memory) {
  const Fields fields(body);
  fields.require("max_tokens");
  const auto tokens = fields.integer("max_tokens", 0, INT32_MAX);
  TranslatedChat chat = translate(body, memory);
  chat.tokens_max = static_cast<std::uint32_t>(*tokens);
  return chat;
}

TranslatedChat chat_of_counted_messages(Json body, ReadingMemory* memory) {
  return translate(body, memory);
}

}  // namespace pagoda::server::anthropic
