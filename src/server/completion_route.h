// From a request's body to a completion that is to be started: what endpoints share that compute.
#pragma once

#include <memory>

#include "server/api/chat_prompt.h"
#include "server/completion.h"
#include "server/http_reply.h"
#include "server/json.h"
#include "server/reading_memory.h"
#include "server/server_state.h"

namespace pagoda::server {

// Counts the memory of reading a body. On a connection's thread bodies are small and at most one
// per thread is parsed: they are not counted, so that small requests are read however much memory
// others hold.
ReadingMemory reading_memory(const HttpRequest& request, const ServerState& state);

// The terms under which a body of this request is read.
ReadingTerms reading_terms(const HttpRequest& request, const ServerState& state,
                           ReadingMemory& memory);

// Parses the body, and checks the model that it names. Throws ApiError.
Json read_body(const HttpRequest& request, const ServedModel& model, ReadingMemory& memory);

// Gives a request its caller's rights, session and memory, and compares it with the earlier one
// that its client names. Throws ApiError.
std::unique_ptr<Completion> complete(CompletionRequest asked, const HttpRequest& request,
                                     const ServerState& state);

// Returns the headers that its reply has besides those of every reply.
HeaderList completion_headers(const Completion& completion);

}  // namespace pagoda::server
