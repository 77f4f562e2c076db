// "upto": the length of a prompt's prefix that a field means.
#pragma once

#include <cstdint>
#include <string>

#include "server/json.h"

namespace pagoda::server {

struct Prompt;

struct Upto {
  enum class Kind : std::uint8_t { kSystem, kPrompt, kTokens };

  Kind kind = Kind::kPrompt;
  std::uint64_t tokens = 0;  // valid with kTokens
};

// Reads "system" (in a chat), "prompt" where the field allows it, or a number of tokens. Throws
// ApiError.
Upto read_upto(const Json& value, const std::string& path, bool is_chat, bool takes_prompt);

// Returns the prefix of one prompt in tokens: a number beyond its length means all of it, and
// "system" is 0 where it has no system message. A number counts tokens of the prompt as it was
// before anything was left out: what is public never becomes more by truncation.
std::uint64_t upto_tokens(const Upto& upto, const Prompt& prompt);

}  // namespace pagoda::server
