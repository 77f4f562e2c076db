#include "server/api/anthropic/messages_request.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "server/api/cache_marks.h"
#include "server/api/chat_history.h"
#include "server/api/message_fields.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server::anthropic {
namespace {

constexpr std::array kAnthropicNames = {
    FieldName{"stop", "stop_sequences"},
    FieldName{"response_format.json_schema", "output_config.format"},
    FieldName{"response_format", "output_config.format"},
    FieldName{"reasoning_effort", "output_config.effort"}};

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
Json take_text_content(Json& content, const std::string& path) {
  if (content.is_string()) return std::move(content);
  if (!content.is_array()) refuse_type(path, content, "a string or an array of blocks");
  Json parts = Json::array();
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Fields block(content[i], element_path(path, i));
    if (type_of_block(block) != "text") refuse_block(block, "\"text\" is");
    read_mark(block);
    parts.push_back({{"type", "text"}, {"text", take_text(content[i], block)}});
    copy_mark(content[i], parts.back());
  }
  if (parts.size() == 1 && parts.front().size() == 2) return std::move(parts.front()["text"]);
  return parts.empty() ? Json("") : parts;
}

void add_tool_use(Json& block, const Fields& fields, ChatHistory& history) {
  const std::string_view id = fields.required_text("id");
  const std::string_view name = fields.required_text("name");
  fields.require("input");
  fields.object("input");
  history.add_call(id, name, std::move(block["input"]));
}

void add_assistant_block(Json& block, const Fields& fields, ChatHistory& history) {
  history.open("assistant", true);
  const std::string_view type = type_of_block(fields);
  if (type == "text") {
    history.add_text(take_text(block, fields));
  } else if (type == "thinking") {
    // Its signature is ours or another server's: nothing depends on it.
    fields.text("signature");
    history.add_reasoning(fields.required_text("thinking"));
  } else if (type == "tool_use") {
    add_tool_use(block, fields, history);
  } else if (type != "redacted_thinking") {  // which nobody here can read
    refuse_block(fields, "\"text\", \"thinking\", \"redacted_thinking\" and \"tool_use\" are");
  }
}

void add_user_block(Json& block, const Fields& fields, ChatHistory& history) {
  const std::string_view type = type_of_block(fields);
  if (type == "text") {
    history.open("user", true);
    history.add_text(take_text(block, fields));
  } else if (type == "tool_result") {
    const std::string_view id = fields.required_text("tool_use_id");
    fields.boolean("is_error");
    Json content = "";
    if (fields.find("content") != nullptr) {
      content = take_text_content(block["content"], fields.path_of("content"));
    }
    history.add_result(id, fields.path_of("tool_use_id"), std::move(content));
  } else {
    refuse_block(fields, "\"text\" and \"tool_result\" are");
  }
}

// Messages of one role in a row are one turn.
void add_message(Json& message, const std::string& path, ChatHistory& history) {
  const Fields fields(message, path);
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
    history.open(role, true);
    Json text = take_text_content(content, content_path);
    if (text.is_string()) return history.add_text(std::move(text));
    for (Json& part : text) {
      history.add_text(std::move(part["text"]));
      history.mark(part);
    }
    return;
  }
  if (!content.is_array()) refuse_type(content_path, content, "a string or an array of blocks");
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Fields block(content[i], element_path(content_path, i));
    const auto add = role == "user" ? add_user_block : add_assistant_block;
    add(content[i], block, history);
    read_mark(block);
    history.mark(content[i]);
  }
}

Json take_messages(Json& body, Json& chat) {
  const Fields fields(body);
  ChatHistory history;
  if (fields.find("system") != nullptr) {
    Json system = take_text_content(body["system"], "system");
    history.open("system", false);
    if (system.is_string()) {
      history.add_text(std::move(system));
    } else {
      for (Json& part : system) {
        history.add_text(std::move(part["text"]));
        history.mark(part);
      }
    }
  }
  fields.require("messages");
  fields.array("messages");
  Json& messages = body["messages"];
  if (messages.empty()) {
    throw ApiError(400, "messages: is empty, expected at least one", "messages");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    add_message(messages[i], element_path("messages", i), history);
  }
  // The answer goes on from an assistant's message that stands last.
  if (history.last_role() == "assistant" && !history.last_has_calls()) {
    chat["continue_final_message"] = true;
  }
  return history.take();
}

// Tools that Anthropic's servers run have a type and no schema: they are left out.
Json take_tools(Json& body) {
  Json tools = Json::array();
  if (read_objects(Fields(body), "tools") == nullptr) return tools;
  Json& given = body["tools"];
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Fields tool(given[i], element_path("tools", i));
    const auto type = tool.text("type");
    if (type && *type != "custom") continue;
    Json function = {{"name", tool.required_text("name")}};
    if (tool.text("description")) function["description"] = *tool.text("description");
    tool.require("input_schema");
    tool.object("input_schema");
    function["parameters"] = std::move(given[i]["input_schema"]);
    if (const auto strict = tool.boolean("strict")) function["strict"] = *strict;
    Json entry = {{"type", "function"}};
    entry["function"] = std::move(function);
    read_mark(tool);
    copy_mark(given[i], entry);
    tools.push_back(std::move(entry));
  }
  return tools;
}

void read_tool_choice(const Fields& fields, Json& chat) {
  const Json* const given = fields.object("tool_choice");
  if (given == nullptr) return;
  const Fields choice(*given, "tool_choice");
  const std::string_view type = choice.required_text("type");
  if (choice.boolean("disable_parallel_tool_use").value_or(false)) {
    chat["parallel_tool_calls"] = false;
  }
  if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool") {
    chat["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", choice.required_text("name")}}}};
  } else {
    const std::string path = choice.path_of("type");
    throw ApiError(400, fmt::format("{}: is \"{}\", expected auto, any, tool or none", path, type),
                   path);
  }
}

// {"effort": "high", "format": {"type": "json_schema", "schema": {…}}}
void take_output_config(Json& body, Json& chat) {
  const Fields fields(body);
  const Json* const config = fields.object("output_config");
  if (config == nullptr) return;
  const Fields members(*config, "output_config");
  if (const auto effort = members.text("effort")) chat["reasoning_effort"] = *effort;
  const Json* const format = members.object("format");
  if (format == nullptr) return;
  const Fields asked(*format, members.path_of("format"));
  Json response_format = {{"type", asked.required_text("type")}};
  if (asked.object("schema") != nullptr) {
    response_format["json_schema"] = {{"name", "output"}, {"strict", true}};
    response_format["json_schema"]["schema"] = std::move(body["output_config"]["format"]["schema"]);
  }
  chat["response_format"] = std::move(response_format);
}

void read_stops(Json& body, Json& chat) {
  const Fields fields(body);
  const Json* const stops = fields.array("stop_sequences");
  if (stops == nullptr) return;
  for (std::size_t i = 0; i < stops->size(); ++i) {
    if (!(*stops)[i].is_string()) {
      refuse_type(element_path("stop_sequences", i), (*stops)[i], "a string");
    }
  }
  chat["stop"] = std::move(body["stop_sequences"]);
}

TranslatedChat translate(Json& body) {
  const Fields fields(body);
  TranslatedChat chat;
  chat.names = kAnthropicNames;
  move_shared_fields(body, chat.body);
  chat.body["messages"] = take_messages(body, chat.body);
  if (Json tools = take_tools(body); !tools.empty()) chat.body["tools"] = std::move(tools);
  read_tool_choice(fields, chat.body);
  take_output_config(body, chat.body);
  read_stops(body, chat.body);
  fields.object("metadata");
  if (const Json* const thinking = fields.object("thinking")) chat.body["thinking"] = *thinking;
  return chat;
}

}  // namespace

TranslatedChat chat_of_messages(Json body) {
  const Fields fields(body);
  fields.require("max_tokens");
  const auto tokens = fields.integer("max_tokens", 0, INT32_MAX);
  TranslatedChat chat = translate(body);
  chat.tokens_max = static_cast<std::uint32_t>(*tokens);
  return chat;
}

TranslatedChat chat_of_counted_messages(Json body) { return translate(body); }

}  // namespace pagoda::server::anthropic
