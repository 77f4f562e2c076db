// Tells a text that was seen before from a new one, by its hash: of as many as kTextsMax, the ones
// seen longest ago are forgotten first. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/lru_map.h"

namespace pagoda::server {

class SeenTexts {
 public:
  static constexpr std::size_t kTextsMax = 4096;

  // True: the text is new.
  bool add(std::string_view text) {
    const std::size_t hash = std::hash<std::string_view>()(text);
    const std::lock_guard lock(mutex_);
    if (seen_.find(hash) != nullptr) return false;
    seen_.put(hash, true);
    return true;
  }

 private:
  std::mutex mutex_;
  LruMap<std::size_t, bool> seen_{kTextsMax};
};

}  // namespace pagoda::server
