#include "kv/cache_scope.h"

#include <utility>

namespace pagoda::kv {

CacheScope::CacheScope(CacheScope&& other) noexcept
    : public_tokens(other.public_tokens),
      priority(other.priority),
      counts_lookup(other.counts_lookup),
      session(std::move(other.session)),
      first_turn_tokens(other.first_turn_tokens),
      branch(other.branch),
      is_use(other.is_use),
      salts_(std::exchange(other.salts_, nullptr)),
      root_(other.root_),
      salt_(other.salt_),
      owner_(other.owner_) {}

CacheScope& CacheScope::operator=(CacheScope&& other) noexcept {
  if (this == &other) return *this;
  if (salts_ != nullptr) salts_->release(salt_);
  public_tokens = other.public_tokens;
  priority = other.priority;
  counts_lookup = other.counts_lookup;
  session = std::move(other.session);
  first_turn_tokens = other.first_turn_tokens;
  branch = other.branch;
  is_use = other.is_use;
  salts_ = std::exchange(other.salts_, nullptr);
  root_ = other.root_;
  salt_ = other.salt_;
  owner_ = other.owner_;
  return *this;
}

CacheScope::~CacheScope() {
  if (salts_ != nullptr) salts_->release(salt_);
}

}  // namespace pagoda::kv
