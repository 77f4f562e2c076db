// A conversation as values a template sees: every string knows which message it is from, and the
// messages have the form the template takes.
#pragma once

#include <string_view>

#include "text/chat_template.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text {

// Stands behind the text to go on from, so that its end is found in the prompt. The tag is the one
// transformers uses: templates that look at the text do the same with it.
inline constexpr std::string_view kContinuationTag = "CONTINUE_FINAL_MESSAGE_TAG ";
inline constexpr Origin kContinuationMark{Source::kAssistant, Origin::kNoMessage - 1};

// Throw jinja::Fault naming the message that is wrong.
jinja::Value import_messages(const Conversation& conversation, const TemplateTraits& traits,
                             jinja::Heap& heap);
// All but the messages: tools, documents, keyword arguments.
void bind_extras(const Conversation& conversation, jinja::Heap& heap, jinja::Scope& scope);

}  // namespace pagoda::text
