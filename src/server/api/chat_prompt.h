// Messages to a prompt: what /v1/chat/completions, /render and /tokenize do alike.
#pragma once

#include "server/json.h"
#include "server/served_model.h"
#include "text/origin_text.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

struct ChatPrompt {
  text::OriginText text;
  text::PromptTokens tokens;
};

// Reads messages, tools, documents and the template's options from a body. Throws ApiError.
ChatPrompt read_chat_prompt(const Json& body, const ServedModel& model);

}  // namespace pagoda::server
