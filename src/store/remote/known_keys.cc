#include "store/remote/known_keys.h"

#include <utility>

namespace pagoda::store {

void KnownKeys::put(const kv::PageKey& key, std::int64_t since_ns) {
  if (half_ == 0) return;
  if (young_.size() >= half_ && !young_.contains(key)) {
    old_ = std::exchange(young_, {});
  }
  young_[key] = since_ns;
}

void KnownKeys::learn(const kv::PageKey& key, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  put(key, now_ns);
}

void KnownKeys::forget(const kv::PageKey& key) {
  const std::lock_guard lock(mutex_);
  young_.erase(key);
  old_.erase(key);
}

void KnownKeys::clear() {
  const std::lock_guard lock(mutex_);
  young_.clear();
  old_.clear();
}

bool KnownKeys::knows(const kv::PageKey& key, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  auto found = young_.find(key);
  if (found == young_.end()) {
    found = old_.find(key);
    if (found == old_.end()) return false;
  }
  const std::int64_t since_ns = found->second;
  if (now_ns - since_ns > age_max_ns_) return false;
  put(key, since_ns);
  return true;
}

}  // namespace pagoda::store
