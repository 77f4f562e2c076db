#include "app/synthetic_request.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"

namespace pagoda::app {

std::vector<TokenId> random_prompt(std::uint32_t vocabulary, std::uint64_t tokens,
                                   std::uint64_t seed) {
  std::vector<TokenId> prompt;
  prompt.reserve(tokens);
  for (std::uint64_t i = 0; i < tokens; ++i) {
    prompt.emplace_back(static_cast<std::uint32_t>(random_bits(seed, 0, i) % vocabulary));
  }
  return prompt;
}

engine::Request fixed_request(std::vector<TokenId> prompt, std::uint32_t new_tokens) {
  engine::Request request;
  request.prompt = std::move(prompt);
  request.end.max_tokens = new_tokens;
  request.end.ignore_eos = true;
  return request;
}

Status check_context(const std::string& made_of, std::uint64_t tokens,
                     std::uint64_t context_tokens) {
  if (tokens <= context_tokens) return ok_status();
  return Error{ErrorCode::kOutOfRange, fmt::format("{} make {} tokens, but the context holds {}",
                                                   made_of, tokens, context_tokens)};
}

}  // namespace pagoda::app
