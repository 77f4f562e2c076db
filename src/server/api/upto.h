// "upto": how much of a prompt is meant, from its first token.
#pragma once

#include <cstdint>
#include <string>

#include "server/json.h"

namespace pagoda::server {

struct Prompt;

struct Upto {
  enum class Kind : std::uint8_t { kSystem, kPrompt, kTokens };

  Kind kind = Kind::kPrompt;
  std::uint64_t tokens = 0;  // of kTokens
};

// "system" (of a chat), "prompt" where the field takes it, or a number of tokens. Throws ApiError.
Upto read_upto(const Json& value, const std::string& path, bool is_chat, bool takes_prompt);

// Of one prompt: a number beyond it means all of it; 0 where it has no system message.
std::uint64_t upto_tokens(const Upto& upto, const Prompt& prompt);

}  // namespace pagoda::server
