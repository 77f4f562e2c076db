// Where a request looks and what it leaves: a namespace, and a tenant's region in it. A scope is a
// lease on both: move-only, and must not outlive the cache that gave it.
#pragma once

#include <cstdint>
#include <string>

#include "kv/ids.h"
#include "kv/lookup_scope.h"
#include "kv/namespaces.h"
#include "kv/salt_table.h"
#include "kv/session_table.h"

namespace pagoda::kv {

class CacheScope {
 public:
  // Takes over one reference of the salt. The namespace is that of the policy's rows.
  CacheScope(SaltTable& salts, Namespace& space, const KvPolicy& policy, SaltId salt, OwnerId owner)
      : salts_(&salts), space_(&space), policy_(policy), salt_(salt), owner_(owner) {
    ++space_->scopes;
  }
  CacheScope(CacheScope&& other) noexcept;
  CacheScope& operator=(CacheScope&& other) noexcept;
  ~CacheScope();

  NodeId root() const { return space_->root; }
  const KvPolicy& policy() const { return policy_; }
  // Which tokens each group keeps, under the policy.
  std::span<const memory::AttentionSpec> groups() const { return space_->groups; }
  SaltId salt() const { return salt_; }
  OwnerId owner() const { return owner_; }
  LookupScope lookup() const { return {root(), salt_, public_tokens, groups(), tokens_found_max}; }

  // Would a block of the same tokens be the same block for both?
  bool same_region(const CacheScope& other) const {
    return space_ == other.space_ && salt_ == other.salt_ && public_tokens == other.public_tokens;
  }

  // This much of the prompt, rounded down to whole blocks, is public; all of it when the salt is.
  std::uint64_t public_tokens = 0;
  // A match ends there at the latest (LookupScope).
  std::uint64_t tokens_found_max = std::numeric_limits<std::uint64_t>::max();
  // The request's priority, for policies that look at it: smaller is more urgent.
  std::int32_t priority = 0;
  // Does the request look for its prompt? A request that resumes looked before, and one that
  // computes its whole prompt looks for nothing: the live curve does not count them.
  bool counts_lookup = true;
  // The session that the request is of, and how much of its prompt is the conversation's first turn
  // (README: E10). Empty: of none.
  std::string session = {};
  std::uint64_t first_turn_tokens = 0;
  // The branch that an earlier opening of the same request was given: the request goes on with it.
  BranchRef branch = {};
  // False: the request only brings blocks into the pool. Sessions and what they know stay as they
  // are, and the blocks are nobody's.
  bool is_use = true;

 private:
  void release();

  SaltTable* salts_;  // nullptr: moved from
  Namespace* space_;
  KvPolicy policy_;
  SaltId salt_;
  OwnerId owner_;
};

}  // namespace pagoda::kv
