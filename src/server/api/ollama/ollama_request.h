// Translates bodies of Ollama's POST /api/chat and /api/generate to chats.
#pragma once

#include <cstdint>

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server::ollama {

// A body that asks for nothing loads the model, or unloads it (`keep_alive` 0); nothing for others.
enum class LoadRequest : std::uint8_t { kNone, kLoad, kUnload };
LoadRequest load_request(const Json& body, bool is_chat);

// Both throw ApiError with paths of the body that was given, and the refusal of `memory`, which
// counts what the chat takes besides the body.
TranslatedChat chat_of_chat(Json body, ReadingMemory* memory = nullptr);
TranslatedChat chat_of_generate(Json body, ReadingMemory* memory = nullptr);

}  // namespace pagoda::server::ollama
