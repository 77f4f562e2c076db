// Where a request looks and what it leaves: a namespace, and a tenant's region in it. A scope is a
// lease on the region's salt: move-only, and must not outlive the cache that gave it.
#pragma once

#include <cstdint>
#include <string>

#include "kv/ids.h"
#include "kv/lookup_scope.h"
#include "kv/salt_table.h"
#include "kv/session_table.h"

namespace pagoda::kv {

class CacheScope {
 public:
  // Takes over one reference of the salt.
  CacheScope(SaltTable& salts, NodeId root, SaltId salt, OwnerId owner)
      : salts_(&salts), root_(root), salt_(salt), owner_(owner) {}
  CacheScope(CacheScope&& other) noexcept;
  CacheScope& operator=(CacheScope&& other) noexcept;
  ~CacheScope();

  NodeId root() const { return root_; }
  SaltId salt() const { return salt_; }
  OwnerId owner() const { return owner_; }
  LookupScope lookup() const { return {root_, salt_, public_tokens}; }

  // Would a block of the same tokens be the same block for both?
  bool same_region(const CacheScope& other) const {
    return root_ == other.root_ && salt_ == other.salt_ && public_tokens == other.public_tokens;
  }

  // This much of the prompt, rounded down to whole blocks, is public; all of it when the salt is.
  std::uint64_t public_tokens = 0;
  // The request's priority, for policies that look at it: smaller is more urgent.
  std::int32_t priority = 0;
  // Does the request look for its prompt? A request that resumes looked before, and one that
  // computes its whole prompt looks for nothing: the live curve does not count them.
  bool counts_lookup = true;
  // The session that the request is of, and how much of its prompt is the conversation's first turn
  // (README: E10). Empty: of none.
  std::string session = {};
  std::uint64_t first_turn_tokens = 0;
  // What an earlier opening of the same request was given: it goes on with that branch.
  BranchRef branch = {};
  // False: the request only brings blocks into the pool. Sessions and what they know stay as they
  // are, and the blocks are nobody's.
  bool is_use = true;

 private:
  SaltTable* salts_;  // nullptr: moved from
  NodeId root_;
  SaltId salt_;
  OwnerId owner_;
};

}  // namespace pagoda::kv
