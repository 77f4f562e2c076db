// KnownKeys are keys that were in the store a while ago: bounded in number and in age. Any thread.
//
// There are two halves: new keys go into the young one; when it is full it becomes the old one, and
// the keys that were old are forgotten. A key that is asked for is young again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "kv/tiers/page_store.h"

namespace pagoda::store {

class KnownKeys {
 public:
  KnownKeys(std::size_t keys_max, std::int64_t age_max_ns)
      : half_(keys_max / 2), age_max_ns_(age_max_ns) {}

  void learn(const kv::PageKey& key, std::int64_t now_ns);
  void forget(const kv::PageKey& key);
  void clear();
  bool knows(const kv::PageKey& key, std::int64_t now_ns);

 private:
  struct Hash {
    // Block hashes are digests: any eight bytes will do.
    std::size_t operator()(const kv::PageKey& key) const {
      std::size_t hash = 0;
      std::memcpy(&hash, key.hash.digest.data(), sizeof hash);
      return hash + key.group;
    }
  };
  using Keys = std::unordered_map<kv::PageKey, std::int64_t, Hash>;  // since when

  void put(const kv::PageKey& key, std::int64_t since_ns);

  std::size_t half_;
  std::int64_t age_max_ns_;
  std::mutex mutex_;
  Keys young_;
  Keys old_;
};

}  // namespace pagoda::store
