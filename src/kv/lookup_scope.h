// The part of the tree that a prompt is looked up in: a CacheScope without its lease on the salt.
#pragma once

#include <cstdint>
#include <span>

#include "kv/ids.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::kv {

struct LookupScope {
  NodeId root;                      // of the namespace
  SaltId salt;                      // of the private region
  std::uint64_t public_tokens = 0;  // the beginning of the prompt that is public (README: P6)
  std::span<const memory::AttentionSpec> groups = {};  // which tokens each keeps in the namespace

  // Is a block public that ends after this many tokens, where nothing above it is private?
  bool is_public(std::uint64_t tokens) const { return salt == kPublic || tokens <= public_tokens; }

  // The region of a block that ends after this many tokens, below a block of region `above`.
  SaltId region(SaltId above, std::uint64_t tokens) const {
    return above == kPublic && is_public(tokens) ? kPublic : salt;
  }
};

}  // namespace pagoda::kv
