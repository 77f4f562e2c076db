// A dict of a template.
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

// Entries in the order they came. Keys are texts, numbers, truth values or none, and live as long
// as the heap does. They are looked up by their order: there is no hash for a client to find
// collisions of, and no copy of a key.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };
  static constexpr std::size_t kEntryBytes = 160;  // with its place in the order

  // Null when there is no such key. The heap counts what comparing keys takes.
  const Value* find(const Value& key, Heap& heap) const;
  // Of a short name.
  const Value* find(std::string_view name) const;
  void set(const Value& key, const Value& value, Heap& heap);
  bool erase(const Value& key, Heap& heap);
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }

 private:
  // Equal for equal keys: 1, 1.0 and true are one, as in Python.
  struct Key {
    enum class Rank : std::uint8_t { kNone, kInteger, kReal, kText };

    Rank rank = Rank::kNone;
    std::int64_t number = 0;  // of a real that is no integer, its bits
    std::string_view text;

    auto operator<=>(const Key&) const = default;
  };

  static Key key_of(const Value& value);
  void count_comparisons(const Key& key, Heap& heap) const;

  std::vector<Entry> entries_;
  std::map<Key, std::size_t> places_;
};

}  // namespace pagoda::text::jinja
