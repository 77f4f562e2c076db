#include "kv/cache_scope.h"

#include <utility>

namespace pagoda::kv {

CacheScope::CacheScope(CacheScope&& other) noexcept
    : public_tokens(other.public_tokens),
      tokens_found_max(other.tokens_found_max),
      priority(other.priority),
      counts_lookup(other.counts_lookup),
      session(std::move(other.session)),
      first_turn_tokens(other.first_turn_tokens),
      branch(other.branch),
      is_use(other.is_use),
      salts_(std::exchange(other.salts_, nullptr)),
      space_(other.space_),
      policy_(other.policy_),
      salt_(other.salt_),
      owner_(other.owner_) {}

CacheScope& CacheScope::operator=(CacheScope&& other) noexcept {
  if (this == &other) return *this;
  release();
  public_tokens = other.public_tokens;
  tokens_found_max = other.tokens_found_max;
  priority = other.priority;
  counts_lookup = other.counts_lookup;
  session = std::move(other.session);
  first_turn_tokens = other.first_turn_tokens;
  branch = other.branch;
  is_use = other.is_use;
  salts_ = std::exchange(other.salts_, nullptr);
  space_ = other.space_;
  policy_ = other.policy_;
  salt_ = other.salt_;
  owner_ = other.owner_;
  return *this;
}

CacheScope::~CacheScope() { release(); }

void CacheScope::release() {
  if (salts_ == nullptr) return;
  salts_->release(salt_);
  --space_->scopes;
}

}  // namespace pagoda::kv
