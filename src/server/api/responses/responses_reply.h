// Writes answers as OpenAI's responses: output items, whole or as the events of a stream.
#pragma once

#include <memory>

#include "server/api/reply_writer.h"
#include "server/api/responses/responses_request.h"

namespace pagoda::server::responses {

// The member "usage" of a response.
Json usage_json(const ReplyFacts& facts);

std::shared_ptr<ReplyWriter> make_responses_writer(ResponseEcho echo);

}  // namespace pagoda::server::responses
