// Tells a model about tools where its template does not: the tools and the form of a call become
// part of the system message.
#pragma once

#include "chat/answer_form.h"
#include "text/chat_template.h"

namespace pagoda::chat {

// Adds to the conversation's first system message, or a message before all others. `messages` must
// be an array of objects, `tools` one of tools; the result is a function of the two alone.
void add_tool_instructions(const ToolCallForm& form, const text::ChatJson& tools,
                           text::ChatJson& messages);

}  // namespace pagoda::chat
