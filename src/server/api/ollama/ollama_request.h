// Translates bodies of Ollama's POST /api/chat and /api/generate to chats.
#pragma once

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server::ollama {

// Both throw ApiError with paths of the body that was given.
TranslatedChat chat_of_chat(Json body);
TranslatedChat chat_of_generate(Json body);

}  // namespace pagoda::server::ollama
