#include "server/api/responses/responses_request.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "chat/compaction.h"
#include "server/api/cache_marks.h"
#include "server/api/chat_history.h"
#include "server/api/function_tools.h"
#include "server/api/message_fields.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "server/json_string.h"

namespace pagoda::server::responses {
namespace {

constexpr auto kResponsesFields = std::to_array<std::string_view>({
    "background",
    "client_metadata",
    "conversation",
    "include",
    "input",
    "instructions",
    "keep_turns",
    "max_output_tokens",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
});

[[noreturn]] void refuse_kept(const std::string& name, std::string_view what) {
  throw ApiError(400, fmt::format("{}: {}", name, what), name, "unsupported_parameter");
}

// Fields that stand for something an earlier request left on the server.
void refuse_state(const Fields& fields) {
  constexpr std::string_view kNothingKept =
      "this server keeps no responses; send the whole conversation as input";
  for (const char* const name : {"previous_response_id", "conversation"}) {
    if (fields.find(name) != nullptr) refuse_kept(name, kNothingKept);
  }
  if (fields.find("prompt") != nullptr) refuse_kept("prompt", "this server keeps no prompts");
  if (fields.boolean("background").value_or(false)) {
    refuse_kept("background", "is not supported: this server keeps no responses");
  }
  if (fields.integer("top_logprobs", 0, 20).value_or(0) > 0) {
    refuse_kept("top_logprobs", "is not supported here; /v1/chat/completions has it");
  }
  fields.boolean("store");
  const Json* const include = fields.array("include");
  for (std::size_t i = 0; include != nullptr && i < include->size(); ++i) {
    if ((*include)[i] != "message.output_text.logprobs") continue;
    refuse_kept(element_path("include", i),
                "is not supported here; /v1/chat/completions has "
                "logprobs");
  }
}

[[noreturn]] void refuse_item_type(const Fields& fields, std::string_view expected) {
  const std::string path = fields.path_of("type");
  throw ApiError(
      400,
      fmt::format("{}: \"{}\" is not supported, only {}", path, *fields.text("type"), expected),
      path, "unsupported_parameter");
}

// Takes the text out of a part, which has the name of its type in "refusal" and "text" otherwise.
Json take_part(Json& part, const std::string& path) {
  const Fields fields(part, path);
  const std::string_view type = fields.required_text("type");
  const bool is_refusal = type == "refusal";
  if (!is_refusal && type != "input_text" && type != "output_text" && type != "text") {
    refuse_item_type(fields, "\"input_text\", \"output_text\" and \"refusal\" are");
  }
  const char* const member = is_refusal ? "refusal" : "text";
  fields.require(member);
  fields.text(member);
  return std::move(part[member]);
}

// Calls add(text) for a string, or for each part of an array, and then mark(part).
template <class Add, class Mark>
void take_content(Json& content, const std::string& path, const Add& add, const Mark& mark) {
  if (content.is_string()) return add(std::move(content));
  if (!content.is_array()) refuse_type(path, content, "a string or an array of parts");
  for (std::size_t i = 0; i < content.size(); ++i) {
    add(take_part(content[i], element_path(path, i)));
    read_mark(Fields(content[i], element_path(path, i)));
    mark(content[i]);
  }
}

void add_message(Json& item, const std::string& path, ChatHistory& history) {
  const Fields fields(item, path);
  std::string_view role = fields.required_text("role");
  if (role == "developer") role = "system";
  if (role != "user" && role != "assistant" && role != "system") {
    throw ApiError(400,
                   fmt::format("{}: unknown role \"{}\", expected user, assistant, system or "
                               "developer",
                               fields.path_of("role"), role),
                   fields.path_of("role"));
  }
  // Many templates take one system message; instructions and developer messages begin most inputs.
  const bool joins = role == "system" || history.has_only_reasoning();
  history.open(role, joins, path);
  fields.require("content");
  take_content(
      item["content"], fields.path_of("content"),
      [&](Json text) { history.add_text(std::move(text)); },
      [&](const Json& part) { history.mark(part); });
}

void add_call(Json& item, const std::string& path, ChatHistory& history) {
  const Fields fields(item, path);
  const std::string_view id = fields.required_text("call_id");
  const std::string_view name = fields.required_text("name");
  fields.require("arguments");
  fields.text("arguments");
  history.open("assistant", true, path);
  history.add_call(id, name, std::move(item["arguments"]), path);
}

void add_output(Json& item, const std::string& path, TranslationMemory& memory,
                ChatHistory& history) {
  const Fields fields(item, path);
  const std::string_view id = fields.required_text("call_id");
  fields.require("output");
  Json parts = Json::array();
  Json marked = Json::object();
  take_content(
      item["output"], fields.path_of("output"),
      [&](Json text) {
        memory.add(kTranslatedBytes);
        parts.push_back({{"type", "text"}, {"text", std::move(text)}});
      },
      [&](const Json& part) { copy_mark(part, marked); });
  Json content = parts.empty() ? Json("") : std::move(parts);
  if (content.size() == 1 && content.is_array()) {
    Json text = std::move(content.front()["text"]);
    content = std::move(text);
  }
  history.add_result(id, fields.path_of("call_id"), std::move(content), path);
  history.mark(marked);
}

std::string joined_texts(const Fields& fields, const char* name) {
  std::string text;
  const Json* const parts = read_objects(fields, name);
  for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    text += Fields((*parts)[i], element_path(fields.path_of(name), i)).required_text("text");
  }
  return text;
}

// Reasoning stands in `content`, or in the summary of clients that asked for one. What another
// server encrypted is left out.
void add_reasoning(const Json& item, const std::string& path, ChatHistory& history) {
  const Fields fields(item, path);
  const std::string content = joined_texts(fields, "content");
  const std::string summary = joined_texts(fields, "summary");
  if (content.empty() && summary.empty()) return;
  history.open("assistant", history.has_only_reasoning(), path);
  history.add_reasoning(content.empty() ? summary : content);
}

// A summary stands in a chat as the answer to the question for it.
void add_compaction(const Json& item, const std::string& path, ChatHistory& history) {
  const Fields fields(item, path);
  const std::string_view content = fields.required_text("encrypted_content");
  if (!content.starts_with(kSummaryMark)) {
    const std::string content_path = fields.path_of("encrypted_content");
    throw ApiError(
        400,
        fmt::format("{}: was not made by this server's /v1/responses/compact, and cannot "
                    "be read",
                    content_path),
        content_path, "unsupported_parameter");
  }
  history.open("user", false, path);
  history.add_text(chat::kSummaryRequest);
  history.open("assistant", false, path);
  history.add_text(content.substr(kSummaryMark.size()));
}

void add_item(Json& item, const std::string& path, TranslationMemory& memory,
              ChatHistory& history) {
  const Fields fields(item, path);
  const std::string type(fields.text("type").value_or("message"));
  if (type == "message") {
    add_message(item, path, history);
  } else if (type == "function_call") {
    add_call(item, path, history);
  } else if (type == "function_call_output") {
    add_output(item, path, memory, history);
  } else if (type == "reasoning") {
    add_reasoning(item, path, history);
  } else if (type == "compaction") {
    add_compaction(item, path, history);
  } else if (type == "item_reference") {
    const std::string type_path = fields.path_of("type");
    throw ApiError(
        400,
        fmt::format("{}: this server keeps no responses; send the item itself (\"store\": "
                    "false in clients that refer to items)",
                    type_path),
        type_path, "unsupported_parameter");
  } else {
    refuse_item_type(fields,
                     "\"message\", \"function_call\", \"function_call_output\", \"reasoning\" and "
                     "\"compaction\" are");
  }
}

void take_input(Json& body, TranslationMemory& memory, ChatHistory& history) {
  const Fields fields(body);
  if (fields.text("instructions")) {
    history.open("system", false, "instructions");
    history.add_text(std::move(body["instructions"]));
  }
  fields.require("input");
  Json& input = body["input"];
  if (input.is_string()) {
    history.open("user", false, "input");
    return history.add_text(std::move(input));
  }
  if (!input.is_array()) refuse_type("input", input, "a string or an array of items");
  if (input.empty()) throw ApiError(400, "input: is empty, expected at least one item", "input");
  for (std::size_t i = 0; i < input.size(); ++i) {
    add_item(input[i], element_path("input", i), memory, history);
  }
}

void read_tool_choice(const Fields& fields, Json& chat) {
  if (const auto parallel = fields.boolean("parallel_tool_calls")) {
    chat["parallel_tool_calls"] = *parallel;
  }
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr) return;
  chat["tool_choice"] = *choice;
  if (choice->is_string()) return;
  if (!choice->is_object()) refuse_type("tool_choice", *choice, "a string or an object");
  const Fields members(*choice, "tool_choice");
  if (members.required_text("type") != "function") return;
  chat["tool_choice"] = {{"type", "function"},
                         {"function", {{"name", members.required_text("name")}}}};
}

void read_reasoning(const Fields& fields, TranslatedChat& chat) {
  const Json* const reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return;
  const Fields members(*reasoning, "reasoning");
  members.text("summary");
  if (const auto effort = members.text("effort")) {
    chat.write("reasoning_effort", "reasoning.effort", *effort);
  }
}

// {"format": {"type": "json_schema", "name": …, "schema": {…}, "strict": true}}
void take_text_format(Json& body, TranslatedChat& chat) {
  const Fields fields(body);
  const Json* const text = fields.object("text");
  if (text == nullptr) return;
  const Fields members(*text, "text");
  members.text("verbosity");
  const Json* const format = members.object("format");
  if (format == nullptr) return;
  const Fields asked(*format, members.path_of("format"));
  const std::string_view type = asked.required_text("type");
  Json response_format = {{"type", type}};
  if (type == "json_schema") {
    Json schema = {{"name", asked.required_text("name")}};
    if (const auto strict = asked.boolean("strict")) schema["strict"] = *strict;
    asked.require("schema");
    asked.object("schema");
    schema["schema"] = std::move(body["text"]["format"]["schema"]);
    response_format["json_schema"] = std::move(schema);
  }
  chat.names.push_back({"response_format.json_schema", "text.format"});
  chat.write("response_format", "text.format", std::move(response_format));
}

constexpr std::size_t kEchoBytesMax = std::size_t{64} << 10;  // of one member

// Subtracts the bytes that a value has as JSON from `room`; returns false where there are more. No
// text is made of values that are not repeated.
bool fits(const Json& value, std::size_t& room) {
  const std::size_t bytes =
      8 + (value.is_string() ? value.get_ref<const std::string&>().size() : std::size_t{0});
  if (bytes > room) return false;
  room -= bytes;
  if (!value.is_structured()) return true;
  for (const auto& [key, member] : value.items()) {
    if (key.size() > room) return false;
    room -= key.size();
    if (!fits(member, room)) return false;
  }
  return true;
}

}  // namespace

ResponseEcho echo_of_responses(const Json& body) {
  // Name, and what stands there where the request says nothing.
  constexpr auto kMembers = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"instructions", "null"},
       {"max_output_tokens", "null"},
       {"metadata", "{}"},
       {"parallel_tool_calls", "true"},
       {"reasoning", R"({"effort":null,"summary":null})"},
       {"temperature", "null"},
       {"text", R"({"format":{"type":"text"}})"},
       {"tool_choice", R"("auto")"},
       {"tools", "[]"},
       {"top_p", "null"},
       {"truncation", R"("disabled")"},
       {"prompt_cache_key", "null"},
       {"user", "null"}});
  ResponseEcho echo;
  const Fields fields(body);
  for (const auto& [name, otherwise] : kMembers) {
    const Json* const given = fields.find(name);
    // A stream says it three times.
    std::size_t room = kEchoBytesMax;
    const bool repeats = given != nullptr && fits(*given, room);
    std::string said = repeats ? dump_json(*given) : std::string(otherwise);
    if (said.size() > kEchoBytesMax) said = otherwise;
    echo.members += fmt::format("\"{}\":{},", name, said);
  }
  echo.members += R"("previous_response_id":null,"background":false,"store":false)";
  const Json* const reasoning = fields.object("reasoning");
  echo.shows_summary =
      reasoning != nullptr && Fields(*reasoning, "reasoning").text("summary").has_value();
  return echo;
}

TranslatedChat chat_of_responses(Json body, ReadingMemory* counted) {
  const Fields fields(body);
  refuse_state(fields);
  TranslationMemory memory(counted);
  TranslatedChat chat;
  chat.names = {{"messages", "input"}, {"prompt", "input"}};
  move_other_fields(body, kResponsesFields, chat.body);
  ChatHistory history(memory);
  take_input(body, memory, history);
  chat.body["messages"] = history.take();
  chat.paths.messages = history.take_places();
  take_function_tools(body, {.schema = "parameters", .needs_type = true}, memory, chat);
  read_tool_choice(fields, chat.body);
  read_reasoning(fields, chat);
  take_text_format(body, chat);
  if (const auto tokens = fields.integer("max_output_tokens", 0, INT32_MAX)) {
    chat.tokens_max = static_cast<std::uint32_t>(*tokens);
    chat.names.push_back({"max_tokens", "max_output_tokens"});
  }
  return chat;
}

}  // namespace pagoda::server::responses
