// Translates bodies of Anthropic's POST /v1/messages to chats.
#pragma once

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server::anthropic {

// Throws ApiError with paths of the body that was given, and the refusal of `memory`, which counts
// what the chat takes.
TranslatedChat chat_of_messages(Json body, ReadingMemory* memory = nullptr);
// Likewise for /v1/messages/count_tokens, where `max_tokens` need not be.
TranslatedChat chat_of_counted_messages(Json body, ReadingMemory* memory = nullptr);

}  // namespace pagoda::server::anthropic
