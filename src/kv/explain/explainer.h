// Why a match ends where it does (README: X1 to X6).
//
// The explainer asks the other parts: which tokens the tree knows, what left, what is there in
// another namespace or under another salt of the same owner, and what is there instead. It keeps
// nothing and changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "kv/block_identities.h"
#include "kv/cache_scope.h"
#include "kv/explain/eviction_history.h"
#include "kv/explanation.h"
#include "kv/namespaces.h"
#include "kv/prefix/prefix_lookup.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/salt_table.h"

namespace pagoda::kv {

class Explainer {
 public:
  // All of them must outlive the explainer.
  struct Parts {
    const PrefixTree& tree;
    const SaltTable& salts;
    const Namespaces& namespaces;
    const PrefixLookup& lookup;
    const BlockIdentities& identities;
    const EvictionHistory& history;
    bool share;  // CacheOptions::share
  };

  explicit Explainer(const Parts& parts) : in_(parts) {}

  // `match` is the prompt's match in the scope, now.
  Explanation explain(const CacheScope& scope, std::span<const TokenId> prompt,
                      const Match& match) const;

 private:
  // How far a prompt would have matched, had nothing left.
  struct EvictedMatch {
    std::uint64_t tokens = 0;
    std::optional<EvictionRecord> first;  // of the first block that is missing
  };

  EvictedMatch evicted_match(const LookupScope& scope, const PrefixPath& path,
                             std::span<const TokenId> prompt) const;
  std::optional<EvictionRecord> last_eviction(const PrefixPath& path) const;
  void search_other_scopes(const CacheScope& scope, std::span<const TokenId> prompt,
                           Explanation& why) const;
  std::vector<TokenId> stored_after(const LookupScope& scope, const PrefixPath& path,
                                    std::span<const TokenId> prompt) const;

  Parts in_;
};

}  // namespace pagoda::kv
