#include "server/api/chat_prompt.h"

#include <fmt/format.h>

#include <utility>

#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// The limit for a connection's thread: some milliseconds, which is enough for conversations of 64
// KiB in current templates.
constexpr text::jinja::RenderLimits kShort = {.steps = 50'000, .bytes = 16U << 20};

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

// Reads an array of objects, as templates expect of `tools`, `documents` and the like.
const Json* read_objects(const Fields& fields, std::string_view name) {
  const Json* const array = fields.array(name);
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if ((*array)[i].is_object()) continue;
    refuse_type(element_path(fields.path_of(name), i), (*array)[i], "an object");
  }
  return array;
}

// {"type": "function", "function": {"name": …}}
void read_tools(const Fields& fields) {
  const Json* const tools = read_objects(fields, "tools");
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const Fields tool((*tools)[i], element_path(fields.path_of("tools"), i));
    tool.text("type");
    const Json* const function = tool.object("function");
    if (function == nullptr) continue;
    const Fields named(*function, tool.path_of("function"));
    named.require("name");
    named.text("name");
  }
}

void check_message(const Json& message, const std::string& path) {
  const Fields fields(message, path);
  fields.require("role");
  fields.text("role");
  read_objects(fields, "tool_calls");
  const Json* const content = fields.find("content");
  if (content == nullptr || content->is_string()) return;
  const std::string content_path = fields.path_of("content");
  if (!content->is_array()) refuse_type(content_path, *content, "a string or an array of parts");
  for (std::size_t i = 0; i < content->size(); ++i) {
    check_part((*content)[i], element_path(content_path, i));
  }
}

void read_messages(const Fields& fields) {
  fields.require("messages");
  const Json& messages = *fields.array("messages");
  if (messages.empty()) {
    throw ApiError(400, "messages: is empty, expected at least one", "messages");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check_message(messages[i], element_path("messages", i));
  }
}

// Moves a member out of the body, which may be large, without a copy.
Json take_member(Json& body, const char* name) {
  const auto found = body.find(name);
  return found == body.end() ? Json(nullptr) : std::exchange(*found, nullptr);
}

text::Conversation read_conversation(Json& body) {
  const Fields fields(body);
  read_messages(fields);
  read_tools(fields);
  read_objects(fields, "documents");
  const bool has_kwargs = fields.object("chat_template_kwargs") != nullptr;
  text::Conversation conversation;
  conversation.messages = take_member(body, "messages");
  conversation.tools = take_member(body, "tools");
  conversation.documents = take_member(body, "documents");
  if (has_kwargs) conversation.kwargs = take_member(body, "chat_template_kwargs");
  // Templates of reasoning models read the effort under this name.
  const std::optional<std::string_view> effort = fields.text("reasoning_effort");
  if (effort && !conversation.kwargs.contains("reasoning_effort")) {
    conversation.kwargs["reasoning_effort"] = *effort;
  }
  conversation.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  conversation.add_generation_prompt =
      fields.boolean("add_generation_prompt").value_or(!conversation.continue_final_message);
  if (conversation.continue_final_message && conversation.add_generation_prompt) {
    throw ApiError(400, "continue_final_message: and add_generation_prompt exclude each other",
                   "continue_final_message");
  }
  return conversation;
}

}  // namespace

std::optional<ChatPrompt> read_chat_prompt(Json& body, const ServedModel& model,
                                           const ReadingTerms& terms, std::uint64_t tokens_max) {
  const text::Conversation conversation = read_conversation(body);
  if (!model.chat_template) {
    throw ApiError(400,
                   fmt::format("messages: the model \"{}\" has no chat template; give the server "
                               "option chat_template, or use /v1/completions",
                               model.name()),
                   "messages", "no_chat_template");
  }
  text::jinja::RenderLimits limits = terms.may_take_long ? text::jinja::RenderLimits{} : kShort;
  limits.account = &terms.memory;
  Result<text::OriginText> rendered = model.chat_template->render(conversation, limits);
  if (!rendered.ok()) {
    const ErrorCode code = rendered.error().code;
    if (code == ErrorCode::kOutOfRange && !terms.may_take_long) throw TakesLong();
    if (code == ErrorCode::kExhausted) throw terms.memory.refusal();
    throw ApiError(400, fmt::format("messages: {}", rendered.error().message), "messages");
  }
  text::OriginText text = std::move(rendered).value();
  auto tokens = text::tokenise_prompt_within(text, model.tokenizer, tokens_max);
  if (!tokens) return std::nullopt;
  return ChatPrompt{std::move(text), std::move(*tokens)};
}

}  // namespace pagoda::server
