// InternIndex finds the number of a value that was stored before: a hash table of numbers alone,
// whose values lie elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pagoda::structured {

// Mixes one word into a hash.
constexpr std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t word) {
  hash ^= word + 0x9E3779B97F4A7C15U + (hash << 6) + (hash >> 2);
  hash *= 0xFF51AFD7ED558CCDU;
  return hash ^ (hash >> 32);
}

class InternIndex {
 public:
  InternIndex() : slots_(64, 0) {}

  // Returns the number for which equals(number) holds, or `next` after storing it. hash_of(number)
  // must give the hash with which the number was stored.
  template <class Equals, class HashOf>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, const Equals& equals,
                            const HashOf& hash_of) {
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
      if (equals(slots_[at] - 1)) return slots_[at] - 1;
    }
    slots_[at] = next + 1;
    if (++count_ * 2 > slots_.size()) grow(hash_of, next, hash);
    return next;
  }

  std::size_t bytes() const { return slots_.capacity() * sizeof(slots_[0]); }

  void clear() {
    // A large table is given back: it is cleared often.
    if (slots_.size() > 4096) slots_ = std::vector<std::uint32_t>();
    slots_.assign(64, 0);
    count_ = 0;
  }

 private:
  // The number `next` is not stored where hash_of could look yet.
  template <class HashOf>
  void grow(const HashOf& hash_of, std::uint32_t next, std::uint64_t next_hash) {
    std::vector<std::uint32_t> old(slots_.size() * 2, 0);
    old.swap(slots_);
    for (const std::uint32_t slot : old) {
      if (slot == 0) continue;
      const std::uint64_t hash = slot - 1 == next ? next_hash : hash_of(slot - 1);
      std::size_t at = hash & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<std::uint32_t> slots_;  // number + 1; 0: free
  std::size_t count_ = 0;
};

}  // namespace pagoda::structured
