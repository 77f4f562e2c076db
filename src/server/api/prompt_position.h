// Where in a request a token of its prompt was written.
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
  std::optional<std::uint32_t> message;  // of a chat, where the text is a message's
  // From the beginning of the message's text as the template puts it, or of the prompt: counted in
  // characters from 0.
  std::uint64_t character = 0;
};

// The position of byte `bytes` from the beginning of token `token`, which is one of the prompt's.
PromptPosition position_of(const Prompt& prompt, std::uint64_t token, std::uint64_t bytes,
                           const text::Tokenizer& tokenizer);

// {"source": "system", "message": 0, "character": 41}
Json position_json(const PromptPosition& position);

// "the system prompt", "messages[3] (user)", "the chat template's own text", "the prompt"
std::string describe_position(const PromptPosition& position, bool is_chat);

}  // namespace pagoda::server
