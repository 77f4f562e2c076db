// Renders messages to a prompt, for /v1/chat/completions, /render and /tokenize alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/api/answer_terms.h"
#include "server/api/cache_marks.h"
#include "server/api/prompt_normalising.h"
#include "server/api/truncation.h"
#include "server/json.h"
#include "server/option_name.h"
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
  std::optional<PromptTruncation> truncated = {};
  std::size_t messages_added = 0;  // in front of the client's
};

// The limits under which a body is read.
struct ReadingTerms {
  ReadingMemory& memory;             // counts the memory of intermediate values
  bool may_take_long = true;         // false: a template beyond the limit throws TakesLong
  std::uint64_t context_tokens = 0;  // the context of the caller's tenant; 0: the model's
  std::uint64_t output_tokens = 0;   // the most that this tenant gets; 0: what fits
  // The output that a translated request would like; it gives way to the prompt.
  std::optional<std::uint32_t> output_wanted = {};
  const OptionName* option_name = nullptr;  // names options in errors; nullptr: none is named

  std::uint64_t context_of(const ServedModel& model, const engine::Request& request) const {
    const std::uint64_t all = model.context_tokens(request);
    return context_tokens > 0 ? std::min(context_tokens, all) : all;
  }
};

// How long a prompt may be, and what goes where it is longer.
struct PromptLimits {
  PromptRoom room;
  TruncationType truncation = TruncationType::kNone;
};

// Thrown when reading takes longer than this thread allows. Nothing has changed: the same body can
// be read again on a text worker.
struct TakesLong {};

// Takes messages, tools, documents and the template's options out of a body. Returns nothing when
// the prompt is too long, and would be without all that may go. Throws ApiError and TakesLong.
std::optional<ChatPrompt> read_chat_prompt(Json& body, const ServedModel& model,
                                           const ReadingTerms& terms, const PromptLimits& limits);

}  // namespace pagoda::server
