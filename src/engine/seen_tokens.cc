#include "engine/seen_tokens.h"

#include <algorithm>

namespace pagoda::engine {

SeenTokens::SeenTokens(std::span<const TokenId> prompt, std::size_t output_tokens) {
  std::vector<TokenId> sorted(prompt.begin(), prompt.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  entries_.reserve(sorted.size() + output_tokens);
  for (const TokenId token : sorted) entries_.push_back({token, 0});
}

void SeenTokens::add_output_token(TokenId token) {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), token,
                       [](const Entry& entry, TokenId wanted) { return entry.token < wanted; });
  if (at != entries_.end() && at->token == token) {
    ++at->output_count;
  } else {
    entries_.insert(at, {token, 1});
  }
}

}  // namespace pagoda::engine
