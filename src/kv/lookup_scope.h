// The part of the tree that a prompt is looked up in: a CacheScope without its lease on the salt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "base/token_id.h"
#include "kv/ids.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::kv {

struct LookupScope {
  NodeId root;                      // of the namespace
  SaltId salt;                      // of the private region
  std::uint64_t public_tokens = 0;  // the beginning of the prompt that is public (README: P6)
  std::span<const memory::AttentionSpec> groups = {};  // which tokens each keeps in the namespace
  // A match ends there at the latest: the tokens behind it are computed.
  std::uint64_t tokens_found_max = std::numeric_limits<std::uint64_t>::max();

  // The beginning of a prompt that may be found: its last token is always computed.
  std::span<const TokenId> findable(std::span<const TokenId> prompt) const {
    return prompt.first(
        std::min<std::uint64_t>(prompt.empty() ? 0 : prompt.size() - 1, tokens_found_max));
  }

  // Is a block public that ends after this many tokens, where nothing above it is private?
  bool is_public(std::uint64_t tokens) const { return salt == kPublic || tokens <= public_tokens; }

  // The region of a block that ends after this many tokens, below a block of region `above`.
  SaltId region(SaltId above, std::uint64_t tokens) const {
    return above == kPublic && is_public(tokens) ? kPublic : salt;
  }
};

}  // namespace pagoda::kv
