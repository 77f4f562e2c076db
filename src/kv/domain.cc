#include "kv/domain.h"

#include <utility>

#include "kv/cache.h"

namespace pagoda::kv {

Domain::Domain(Domain&& other) noexcept
    : public_tokens(other.public_tokens),
      priority(other.priority),
      asks(other.asks),
      cache_(std::exchange(other.cache_, nullptr)),
      root_(other.root_),
      salt_(other.salt_),
      owner_(other.owner_) {}

Domain& Domain::operator=(Domain&& other) noexcept {
  if (this == &other) return *this;
  if (cache_ != nullptr) cache_->salts_.release(salt_);
  public_tokens = other.public_tokens;
  priority = other.priority;
  asks = other.asks;
  cache_ = std::exchange(other.cache_, nullptr);
  root_ = other.root_;
  salt_ = other.salt_;
  owner_ = other.owner_;
  return *this;
}

Domain::~Domain() {
  if (cache_ != nullptr) cache_->salts_.release(salt_);
}

}  // namespace pagoda::kv
