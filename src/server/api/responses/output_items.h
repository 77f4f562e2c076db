// Writes the items of a conversation that was sent as replies of /v1/responses write theirs.
#pragma once

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server::responses {

// Returns the items of an input that chat_of_responses() takes, a text or an array. A message has a
// type, an id, a status and a list of parts, whatever short form the client used; what it has
// already stays. Throws the refusal of `memory`, which counts what is added.
Json as_output_items(Json input, TranslationMemory& memory);

}  // namespace pagoda::server::responses
