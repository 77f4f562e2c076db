#include "server/api/upto.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api/completion_request.h"
#include "server/api_error.h"
#include "server/fields.h"

namespace pagoda::server {

Upto read_upto(const Json& value, const std::string& path, bool is_chat, bool takes_prompt) {
  if (value.is_number()) {
    const std::int64_t tokens = read_integer(value, path, 1, INT32_MAX);
    return {Upto::Kind::kTokens, static_cast<std::uint64_t>(tokens)};
  }
  const std::string word = value.is_string() ? value.get<std::string>() : std::string();
  if (word == "system" && !is_chat) {
    throw ApiError(400, fmt::format("{}: \"system\" makes sense in a chat only", path), path);
  }
  if (word == "system") return {Upto::Kind::kSystem, 0};
  if (word == "prompt" && takes_prompt) return {};
  refuse_type(path, value,
              takes_prompt ? "\"system\", \"prompt\" or a number of tokens"
                           : "\"system\" or a number of tokens");
}

std::uint64_t upto_tokens(const Upto& upto, const Prompt& prompt) {
  switch (upto.kind) {
    case Upto::Kind::kPrompt:
      return prompt.tokens.size();
    case Upto::Kind::kTokens: {
      const std::uint64_t tokens =
          prompt.truncated ? prompt.truncated->tokens_kept_of(upto.tokens) : upto.tokens;
      return std::min<std::uint64_t>(tokens, prompt.tokens.size());
    }
    case Upto::Kind::kSystem:
      break;
  }
  const auto last =
      std::find(prompt.sources.rbegin(), prompt.sources.rend(), text::Source::kSystem);
  return static_cast<std::uint64_t>(prompt.sources.rend() - last);
}

}  // namespace pagoda::server
