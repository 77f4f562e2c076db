// Messages to a prompt: what /v1/chat/completions, /render and /tokenize do alike.
#pragma once

#include <cstdint>
#include <optional>

#include "server/json.h"
#include "server/reading_memory.h"
#include "server/served_model.h"
#include "text/origin_text.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

struct ChatPrompt {
  text::OriginText text;
  text::PromptTokens tokens;
};

// On what terms a body is read.
struct ReadingTerms {
  ReadingMemory& memory;      // of what is made on the way
  bool may_take_long = true;  // else a template that takes its time throws TakesLong
};

// Thrown by a reading that goes on for longer than it may where it runs. It left nothing behind:
// the same can be read again elsewhere.
struct TakesLong {};

// Takes messages, tools, documents and the template's options out of a body. Nothing when the
// prompt has more than `tokens_max` tokens. Throws ApiError, TakesLong.
std::optional<ChatPrompt> read_chat_prompt(Json& body, const ServedModel& model,
                                           const ReadingTerms& terms, std::uint64_t tokens_max);

}  // namespace pagoda::server
