// Converts a conversation to the values that a template sees: every string knows its message, and
// the messages have the form that the template accepts.
#pragma once

#include <string_view>

#include "text/chat_template.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text {

// This tag stands behind the text that generation continues from, so that its end is found in the
// prompt. transformers uses the same tag, so that templates which look at the text treat it alike.
inline constexpr std::string_view kContinuationTag = "CONTINUE_FINAL_MESSAGE_TAG ";
inline constexpr Origin kContinuationMark{Source::kAssistant, Origin::kNoMessage - 1};

// Both throw jinja::Fault, which names the wrong message.
jinja::Value import_messages(const Conversation& conversation, const TemplateTraits& traits,
                             jinja::Heap& heap);
// Binds everything except the messages: tools, documents, keyword arguments.
void bind_extras(const Conversation& conversation, const TemplateTraits& traits, jinja::Heap& heap,
                 jinja::Scope& scope);

}  // namespace pagoda::text
