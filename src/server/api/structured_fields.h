// The fields that ask for structured output: OpenAI's response_format, vLLM's structured_outputs
// and guided_*, llama.cpp's json_schema and grammar.
#pragma once

#include "server/api/completion_request.h"
#include "server/fields.h"
#include "server/served_model.h"

namespace pagoda::server {

// Compiles what the fields ask for into request.engine.constraint. At most one of them may ask.
// Throws ApiError, whose message names the place in the schema, pattern or grammar; throws
// TakesLong (chat_prompt.h) where something is to be compiled and `may_take_long` is false.
void read_constraint(const Fields& fields, const ServedModel& model, bool may_take_long,
                     CompletionRequest& request);

}  // namespace pagoda::server
