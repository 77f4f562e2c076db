// Requests whose tokens mean nothing: for measuring and comparing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/request.h"

namespace pagoda::app {

// Seeded token ids below the vocabulary's size: how long a token takes does not depend on which.
std::vector<TokenId> random_prompt(std::uint32_t vocabulary, std::uint64_t tokens,
                                   std::uint64_t seed);

// Greedy, and exactly `new_tokens` long.
engine::Request fixed_request(std::vector<TokenId> prompt, std::uint32_t new_tokens);

// An error that names both numbers when `tokens` of one sequence are more than `context_tokens`;
// `made_of` says which options they come from.
Status check_context(const std::string& made_of, std::uint64_t tokens,
                     std::uint64_t context_tokens);

}  // namespace pagoda::app
