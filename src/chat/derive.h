// Finds the form of a model's answers from its chat template: the template is rendered on
// conversations that differ in one thing, and the texts are compared. A form that does not read the
// template's own rendering back is not believed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/answer_form.h"
#include "chat/template_probe.h"
#include "text/chat_template.h"
#include "text/origin_text.h"

namespace pagoda::chat {

// Finds the calls alone; nothing where the template shows none or they cannot be explained.
std::optional<ToolCallForm> derive_calls(const TemplateProbe& probe);
// Finds markers of reasoning and of content; `calls` are the form's, where there are any.
void derive_texts(const TemplateProbe& probe, std::string_view source, AnswerForm& form);
// Returns whether `form` reads what the template writes for an assistant's message with up to
// `calls_max` calls.
bool reads_back(const TemplateProbe& probe, const AnswerForm& form, std::size_t calls_max = 2);

// The form by which answers are read, and where it is from.
struct FoundForm {
  AnswerForm form;
  std::string calls_from;      // "derived", "table", "flag", "generic", "none"
  std::string reasoning_from;  // likewise
  bool shows_tools = false;    // the template tells the model about tools
  bool shows_calls = false;    // the template writes calls of the history
  // The template writes tools or calls in a way that nobody here can read: answers have none.
  bool unreadable_calls = false;
};

struct FormOverrides {
  std::string tool_parser = {};  // a name of vLLM's; empty: derived
  std::string reasoning_parser = {};
};

// kInvalidArgument for an unknown name, which is listed with all that are known.
Result<FoundForm> find_form(const text::ChatTemplate& chat, const FormOverrides& overrides = {});

// Returns whether a prompt ends within reasoning that the answer goes on with.
bool opens_reasoning(const AnswerForm& form, const text::OriginText& prompt);
// Returns whether a prompt ends with reasoning that is closed: the answer has none.
bool closes_reasoning(const AnswerForm& form, const text::OriginText& prompt);

}  // namespace pagoda::chat
