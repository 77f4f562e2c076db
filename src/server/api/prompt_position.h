// Maps a token of a prompt to the position in the request where it was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/api/completion_request.h"
#include "server/json.h"
#include "text/tokenizer.h"

namespace pagoda::server {

// Where the client wrote a message of the chat that a request became.
struct SentMessage {
  std::optional<std::uint32_t> index = {};  // in its API's list of messages
  std::string path = {};                    // "messages[2]", "input[5]", "system"
  std::string path_to = {};                 // of the last that was joined to it; empty: none was
};
// `message` is an index in the chat without what the server put in front.
SentMessage sent_message(const Prompt& prompt, std::size_t message);
// {"message": 2, "path": "input[2]"}, and "path_to" where several were joined.
Json sent_message_json(const SentMessage& sent);

// The lines that were normalised: [{"rule", "message", "path", "served"}]
Json normalised_lines_json(const Prompt& prompt);

struct PromptPosition {
  text::Source source = text::Source::kUser;
  std::optional<SentMessage> message;  // absent where none of the client's holds the text
  bool is_first = false;               // the text is of the chat's first message
  // In characters from 0: from the start of the message's text as the template renders it, or of
  // the prompt.
  std::uint64_t character = 0;
};

// Returns the position of byte `bytes` of token `token`, which must be one of the prompt's.
PromptPosition position_of(const Prompt& prompt, std::uint64_t token, std::uint64_t bytes,
                           const text::Tokenizer& tokenizer);

// {"source": "system", "message": 0, "path": "messages[0]", "character": 41}
Json position_json(const PromptPosition& position);

// "the system prompt", "messages[3] (user)", "the chat template's own text", "the prompt"
std::string describe_position(const PromptPosition& position, bool is_chat);

}  // namespace pagoda::server
