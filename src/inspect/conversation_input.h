// A conversation that stands in the input of a command: JSON as the chat API takes it.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/chat_template.h"

namespace pagoda::inspect {

// An array of messages, or an object with `messages` and, as far as there are any, `tools`,
// `documents`, `chat_template_kwargs`, `add_generation_prompt`, `continue_final_message`.
Result<text::Conversation> parse_conversation(std::string_view json);

}  // namespace pagoda::inspect
