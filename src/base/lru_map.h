// LruMap is a map of bounded size: put() drops the least recently used entry where the map is full.
//
// find() and put() are logarithmic. References stay valid until their entry is dropped.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

#include "base/assert.h"

namespace pagoda {

template <class Key, class Value>
class LruMap {
 public:
  explicit LruMap(std::size_t entries_max) : entries_max_(entries_max) {
    ASSERT(entries_max > 0, "a map has room for what is put");
  }

  // Returns nullptr when the map lacks the key. A found entry counts as used.
  Value* find(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return &found->second->second;
  }

  // The map must lack the key.
  Value& put(const Key& key, Value value) {
    ASSERT(!index_.contains(key), "a key is put once");
    if (order_.size() == entries_max_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(key, std::move(value));
    index_.emplace(key, order_.begin());
    return order_.front().second;
  }

  std::size_t size() const { return order_.size(); }
  void clear() {
    index_.clear();
    order_.clear();
  }

 private:
  using Order = std::list<std::pair<Key, Value>>;

  std::size_t entries_max_;
  Order order_;  // the most recently used first
  std::map<Key, typename Order::iterator> index_;
};

}  // namespace pagoda
