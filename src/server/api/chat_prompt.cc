#include "server/api/chat_prompt.h"

#include <fmt/format.h>

#include <utility>

#include "chat/call_id.h"
#include "chat/history_calls.h"
#include "chat/tool_instructions.h"
#include "server/api/message_fields.h"
#include "server/api/prompt_fingerprint.h"
#include "server/api/prompt_renderer.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {
namespace {

// Moves a member out of the body, which may be large, without a copy.
Json take_member(Json& body, const char* name) {
  const auto found = body.find(name);
  return found == body.end() ? Json(nullptr) : std::exchange(*found, nullptr);
}

// Sets what a template may read under a name, unless chat_template_kwargs has it.
void set_kwarg(Json& kwargs, const char* name, Json value) {
  if (!kwargs.contains(name)) kwargs[name] = std::move(value);
}

// Templates ask for thinking under two names.
void set_thinking(Json& kwargs, bool enabled) {
  set_kwarg(kwargs, "enable_thinking", enabled);
  set_kwarg(kwargs, "thinking", enabled);
}

// Templates ask for an effort under two names; one that the template refuses is left out.
void set_effort(Json& kwargs, std::string_view effort, const text::ChatTemplate* chat) {
  for (const char* const option : text::kEffortOptions) {
    if (chat != nullptr && !chat->traits().takes_effort(option, effort)) continue;
    set_kwarg(kwargs, option, effort);
  }
  if (effort == "none") set_thinking(kwargs, false);
}

// "reasoning_effort", "reasoning": {"effort"}, "thinking" and "enable_thinking" reach the template.
void read_reasoning(const Fields& fields, const text::ChatTemplate* chat, Json& kwargs) {
  std::optional<std::string_view> effort = fields.text("reasoning_effort");
  if (const Json* const reasoning = fields.object("reasoning")) {
    const Fields members(*reasoning, fields.path_of("reasoning"));
    if (const auto nested = members.text("effort"); nested && !effort) effort = nested;
    if (const auto enabled = members.boolean("enabled")) set_thinking(kwargs, *enabled);
  }
  if (effort) set_effort(kwargs, *effort, chat);
  if (const auto enabled = fields.boolean("enable_thinking")) set_thinking(kwargs, *enabled);
  const Json* const thinking = fields.find("thinking");
  if (thinking == nullptr) return;
  if (thinking->is_boolean()) return set_thinking(kwargs, thinking->get<bool>());
  // {"type": "enabled"}, as in Anthropic's API
  const std::string path = fields.path_of("thinking");
  if (!thinking->is_object()) refuse_type(path, *thinking, "a boolean or an object");
  const Fields members(*thinking, path);
  members.require("type");
  set_thinking(kwargs, members.text("type") != "disabled");
}

text::Conversation read_conversation(Json& body, const text::ChatTemplate* chat) {
  const Fields fields(body);
  check_messages(fields);
  check_tools(fields);
  read_objects(fields, "documents");
  const bool has_kwargs = fields.object("chat_template_kwargs") != nullptr;
  text::Conversation conversation;
  conversation.messages = take_member(body, "messages");
  conversation.tools = take_member(body, "tools");
  // Templates take an empty list for tools that are there.
  if (conversation.tools.is_array() && conversation.tools.empty()) conversation.tools = nullptr;
  conversation.documents = take_member(body, "documents");
  if (has_kwargs) conversation.kwargs = take_member(body, "chat_template_kwargs");
  read_reasoning(fields, chat, conversation.kwargs);
  conversation.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  conversation.add_generation_prompt =
      fields.boolean("add_generation_prompt").value_or(!conversation.continue_final_message);
  if (conversation.continue_final_message && conversation.add_generation_prompt) {
    throw ApiError(400, "continue_final_message: and add_generation_prompt exclude each other",
                   "continue_final_message");
  }
  return conversation;
}

// How the answer to this conversation is read.
AnswerTerms answer_terms(const Fields& fields, const ServedModel& model,
                         text::Conversation& conversation) {
  const chat::ServedForm& form = *model.form;
  const Json* const choice = fields.find("tool_choice");
  const bool refused = choice != nullptr && *choice == "none";
  const std::optional<chat::ToolCallForm>& calls = form.found.form.calls;
  AnswerTerms terms = {
      .form = &form,
      .schemas = chat::ToolSchemas(conversation.tools, calls.has_value() && calls->tagged.nests)};
  terms.options.reads_calls = !terms.schemas.empty() && !refused;
  terms.options.single_call =
      !fields.boolean("parallel_tool_calls").value_or(true) || model.calls_once();
  const chat::FoundForm& found = form.found;
  chat::fit_call_ids(found.form.ids, conversation.messages);
  if (!found.shows_calls && found.form.calls) {
    const Status written = chat::write_history_calls(*found.form.calls, conversation.messages);
    if (!written.ok()) {
      const std::string& why = written.error().message;
      throw ApiError(400, why, why.substr(0, why.find(": ")));
    }
  }
  if (terms.options.reads_calls && !found.shows_tools && found.form.calls) {
    chat::add_tool_instructions(*found.form.calls, conversation.tools, conversation.messages);
  }
  return terms;
}

}  // namespace

std::optional<ChatPrompt> read_chat_prompt(Json& body, const ServedModel& model,
                                           const ReadingTerms& terms, const PromptLimits& limits) {
  text::Conversation conversation =
      read_conversation(body, model.chat_template ? &*model.chat_template : nullptr);
  if (!model.chat_template) {
    const OptionName plain = plain_option_name;
    const OptionName& option = terms.option_name != nullptr ? *terms.option_name : plain;
    throw ApiError(400,
                   fmt::format("messages: the model \"{}\" has no chat template, as base models "
                               "have none: use /v1/completions, or start the server with {}",
                               model.name(), option("chat_template", "FILE")),
                   "messages", "no_chat_template");
  }
  std::vector<CacheMark> marks;
  take_tool_marks(conversation.tools, marks);
  std::vector<NormalisedText> normalised =
      normalise_messages(conversation.messages, model.normalise);
  auto droppable = DroppableMessages::of(conversation.messages, limits.truncation);
  const std::size_t sent = conversation.messages.size();
  std::optional<AnswerTerms> answer;
  if (model.form) answer = answer_terms(Fields(body), model, conversation);
  const std::size_t added = conversation.messages.size() - sent;
  droppable.add_in_front(added);
  take_message_marks(conversation.messages, marks);
  const std::uint64_t marks_dropped = drop_early_marks(marks);
  auto rendered = PromptRenderer(model, terms, conversation).render(limits, droppable);
  if (!rendered) return std::nullopt;
  text::OriginText& text = rendered->text;
  if (rendered->truncated) follow_messages(rendered->truncated->kept, marks);
  if (answer) {
    const chat::AnswerForm& form = model.form->found.form;
    answer->options.in_reasoning = chat::opens_reasoning(form, text);
    answer->may_reason = conversation.add_generation_prompt && !chat::closes_reasoning(form, text);
  }
  place_marks(text, rendered->tokens, conversation.messages, marks);
  RequestFingerprint fingerprint =
      fingerprint_of(conversation, rendered->tokens, hash_format(Fields(body)));
  return ChatPrompt{std::move(text),
                    std::move(rendered->tokens),
                    std::move(answer),
                    std::move(marks),
                    marks_dropped,
                    std::move(fingerprint),
                    std::move(normalised),
                    std::move(rendered->truncated),
                    added};
}

}  // namespace pagoda::server
