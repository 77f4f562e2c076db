// What a match may be at most, by the simplest means: all texts ever committed, compared one by
// one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace pagoda::kv {

class CacheOracle {
 public:
  struct LookupScope {
    std::uint64_t space;
    std::uint64_t tenant;  // 0: nobody's, all it leaves is public
  };

  // Remembers all that a request has computed. `public_tokens` counts whole blocks.
  void commit(const LookupScope& client, std::uint64_t public_tokens,
              std::span<const TokenId> tokens) {
    texts_.push_back({client, public_tokens, {tokens.begin(), tokens.end()}});
  }

  // The longest beginning of the prompt that was committed where the client may look: in its own
  // region, or in the public part of anyone's text. At most prompt - 1.
  std::uint64_t longest(const LookupScope& client, std::span<const TokenId> prompt) const {
    std::uint64_t longest = 0;
    for (const Text& text : texts_) {
      if (text.client.space != client.space) continue;
      const auto end =
          std::mismatch(prompt.begin(), prompt.end(), text.tokens.begin(), text.tokens.end());
      auto shared = static_cast<std::uint64_t>(end.first - prompt.begin());
      const bool open = text.client.tenant == 0 || text.client.tenant == client.tenant;
      if (!open) shared = std::min(shared, text.public_tokens);
      longest = std::max(longest, shared);
    }
    return prompt.empty() ? 0 : std::min<std::uint64_t>(longest, prompt.size() - 1);
  }

 private:
  struct Text {
    LookupScope client;
    std::uint64_t public_tokens;
    std::vector<TokenId> tokens;
  };
  std::vector<Text> texts_;
};

}  // namespace pagoda::kv
