// Translates bodies of Anthropic's POST /v1/messages to chats.
#pragma once

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server::anthropic {

// Throws ApiError with paths of the body that was given.
TranslatedChat chat_of_messages(Json body);
// Likewise for /v1/messages/count_tokens, where `max_tokens` need not be.
TranslatedChat chat_of_counted_messages(Json body);

}  // namespace pagoda::server::anthropic
