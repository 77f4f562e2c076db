// The body of a completion of OpenAI's chats, texts and responses or of Anthropic's messages,
// whichever it is: for endpoints that are asked about a completion.
#pragma once

#include "server/api/chat_prompt.h"
#include "server/api/completion_request.h"
#include "server/json.h"

namespace pagoda::server {

// An API is told by members that no other has: "input" is of responses, "messages" of chats, unless
// "system", a tool's "input_schema" or a block of a tool's use say that they are Anthropic's.
// Throws ApiError and TakesLong.
CompletionRequest read_any_completion(Json body, const ServedModel& model,
                                      const ReadingTerms& terms);

}  // namespace pagoda::server
