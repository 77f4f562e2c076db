// The body of a completion of OpenAI's chats, texts and responses or of Anthropic's messages,
// whichever it is: for endpoints that are asked about a completion.
#pragma once

#include "server/api/chat_prompt.h"
#include "server/api/completion_request.h"
#include "server/json.h"

namespace pagoda::server {

// "api" names the API ("messages", "/v1/messages"). Without it an API is told by members that no
// other has: "input" is of responses, "messages" of chats, unless the client sends Anthropic's
// header (`is_anthropic`) or a member that Anthropic's API alone has says that they are its own.
// Throws ApiError and TakesLong.
CompletionRequest read_any_completion(Json body, bool is_anthropic, const ServedModel& model,
                                      const ReadingTerms& terms);

}  // namespace pagoda::server
