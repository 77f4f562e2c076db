// Renders messages to a prompt, for /v1/chat/completions, /render and /tokenize alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/api/answer_terms.h"
#include "server/api/cache_marks.h"
#include "server/api/prompt_normalising.h"
#include "server/json.h"
#include "server/reading_memory.h"
#include "server/request_fingerprints.h"
#include "server/served_model.h"
#include "text/origin_text.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

struct ChatPrompt {
  text::OriginText text;
  text::PromptTokens tokens;
  std::optional<AnswerTerms> answer;  // how what the model writes is read
  std::vector<CacheMark> marks;       // in the order of the prompt
  std::uint64_t marks_dropped = 0;    // because there were too many
  RequestFingerprint fingerprint;
  std::vector<NormalisedText> normalised;  // lines that a fixed text was put into
};

// The limits under which a body is read.
struct ReadingTerms {
  ReadingMemory& memory;      // counts the memory of intermediate values
  bool may_take_long = true;  // false: a template beyond the limit throws TakesLong
};

// Thrown when reading takes longer than this thread allows. Nothing has changed: the same body can
// be read again on a text worker.
struct TakesLong {};

// Takes messages, tools, documents and the template's options out of a body. Returns nothing when
// the prompt has more than `tokens_max` tokens. Throws ApiError and TakesLong.
std::optional<ChatPrompt> read_chat_prompt(Json& body, const ServedModel& model,
                                           const ReadingTerms& terms, std::uint64_t tokens_max);

}  // namespace pagoda::server
