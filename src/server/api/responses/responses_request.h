// Translates bodies of OpenAI's POST /v1/responses to chats. Nothing is kept between requests: each
// carries its whole conversation.
#pragma once

#include <string>
#include <string_view>

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server::responses {

// Begins the content of compaction items that were made here, which clients send back as they are:
// a summary follows. Contents of other servers are encrypted.
inline constexpr std::string_view kSummaryMark = "pagoda-summary:";

// The fields of a request that its response repeats.
struct ResponseEcho {
  std::string members;         // JSON text: "instructions":null,"tools":[],…
  bool shows_summary = false;  // reasoning goes where clients look for its summary
};

// Throws ApiError with paths of the body that was given.
ResponseEcho echo_of_responses(const Json& body);
// Also throws the refusal of `memory`, which counts what the chat takes.
TranslatedChat chat_of_responses(Json body, ReadingMemory* memory = nullptr);

}  // namespace pagoda::server::responses
