// Maps a token of a prompt to the position in the request where it was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/api/completion_request.h"
#include "server/json.h"
#include "text/tokenizer.h"

namespace pagoda::server {

struct PromptPosition {
  text::Source source = text::Source::kUser;
  // The message's index, in a chat whose message holds the text.
  std::optional<std::uint32_t> message;
  // In characters from 0: from the start of the message's text as the template renders it, or of
  // the prompt.
  std::uint64_t character = 0;
};

// Returns the position of byte `bytes` of token `token`, which must be one of the prompt's.
PromptPosition position_of(const Prompt& prompt, std::uint64_t token, std::uint64_t bytes,
                           const text::Tokenizer& tokenizer);

// {"source": "system", "message": 0, "character": 41}
Json position_json(const PromptPosition& position);

// "the system prompt", "messages[3] (user)", "the chat template's own text", "the prompt"
std::string describe_position(const PromptPosition& position, bool is_chat);

}  // namespace pagoda::server
