#include "kv/cache_scope.h"

#include <utility>

#include "kv/cache.h"

namespace pagoda::kv {

CacheScope::CacheScope(CacheScope&& other) noexcept
    : public_tokens(other.public_tokens),
      priority(other.priority),
      counts_lookup(other.counts_lookup),
      cache_(std::exchange(other.cache_, nullptr)),
      root_(other.root_),
      salt_(other.salt_),
      owner_(other.owner_) {}

CacheScope& CacheScope::operator=(CacheScope&& other) noexcept {
  if (this == &other) return *this;
  if (cache_ != nullptr) cache_->salts_.release(salt_);
  public_tokens = other.public_tokens;
  priority = other.priority;
  counts_lookup = other.counts_lookup;
  cache_ = std::exchange(other.cache_, nullptr);
  root_ = other.root_;
  salt_ = other.salt_;
  owner_ = other.owner_;
  return *this;
}

CacheScope::~CacheScope() {
  if (cache_ != nullptr) cache_->salts_.release(salt_);
}

}  // namespace pagoda::kv
