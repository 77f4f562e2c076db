// Messages to a prompt: what /v1/chat/completions, /render and /tokenize do alike.
#pragma once

#include <cstdint>
#include <optional>

#include "server/json.h"
#include "server/served_model.h"
#include "text/origin_text.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

struct ChatPrompt {
  text::OriginText text;
  text::PromptTokens tokens;
};

// Reads messages, tools, documents and the template's options from a body. Nothing when the prompt
// has more than `tokens_max` tokens. Throws ApiError.
std::optional<ChatPrompt> read_chat_prompt(const Json& body, const ServedModel& model,
                                           std::uint64_t tokens_max);

}  // namespace pagoda::server
