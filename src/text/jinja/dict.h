// A template's dict.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Heap;

// Entries keep their insertion order. Keys are texts, numbers, booleans or none, and live as long
// as the heap. They are looked up in a sorted order, because a client could find collisions of a
// hash; no key is copied.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };
  static constexpr std::size_t kEntryBytes = 160;  // with its entry in the sorted order

  // Returns nullptr when there is no such key. The heap counts the work of comparing keys.
  const Value* find(const Value& key, Heap& heap) const;
  // Finds a short name.
  const Value* find(std::string_view name) const;
  void set(const Value& key, const Value& value, Heap& heap);
  bool erase(const Value& key, Heap& heap);
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }

 private:
  // Equal keys have equal Keys: 1, 1.0 and true are one, as in Python.
  struct Key {
    enum class Rank : std::uint8_t { kNone, kInteger, kReal, kText };

    Rank rank = Rank::kNone;
    std::int64_t number = 0;  // the bits of a float that is no integer
    std::string_view text;

    auto operator<=>(const Key&) const = default;
  };

  static Key key_of(const Value& value);
  void count_comparisons(const Key& key, Heap& heap) const;

  std::vector<Entry> entries_;
  std::map<Key, std::size_t> places_;
};

}  // namespace pagoda::text::jinja
