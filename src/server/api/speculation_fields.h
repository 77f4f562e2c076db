// Fields by which a request asks for drafts, which change the speed of an answer and no token of
// it:
//
//   "speculative": false                                     nothing is drafted
//   "speculative": {"n_max": 4}, "speculative.n_max": 4      llama.cpp's: at most so many tokens
//   "prediction": {"type": "content", "content": "…"}        OpenAI's: the output to expect
#pragma once

#include "engine/reply.h"
#include "server/api/completion_request.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

// Throws ApiError.
void read_speculation(const Fields& fields, const ServedModel& model, CompletionRequest& request);

// {"drafts": 9, "draft_tokens": 40, "accepted_tokens": 31}
Json speculation_json(const engine::DraftCounts& drafts);

}  // namespace pagoda::server
