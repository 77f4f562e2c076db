// Caches the tokens of words. It has a fixed number of slots, one cache line each; a word replaces
// the former word of its slot. Words that are too long, or have too many tokens, are not cached.
//
// Not thread-safe: each thread that encodes borrows one (see workspace_pool.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/token_id.h"

namespace pagoda::text {

class WordCache {
 public:
  static constexpr std::size_t kWordBytesMax = 32;
  static constexpr std::size_t kTokensMax = 7;

  // A word as four overlapping loads that together hold all its bytes: two words of one size are
  // equal if and only if their loads are.
  struct Key {
    std::array<std::uint64_t, 4> loads{};
    std::uint8_t bytes = 0;
    bool operator==(const Key&) const = default;
  };

  // The word must have 1 to kWordBytesMax bytes.
  static Key key_of(std::string_view word) {
    Key key;
    key.bytes = static_cast<std::uint8_t>(word.size());
    const char* const begin = word.data();
    const char* const end = begin + word.size();
    if (word.size() >= 8) {
      key.loads[0] = load<std::uint64_t>(begin);
      key.loads[1] = load<std::uint64_t>(end - 8);
      if (word.size() > 16) {
        key.loads[2] = load<std::uint64_t>(begin + 8);
        key.loads[3] = load<std::uint64_t>(end - 16);
      }
    } else if (word.size() >= 4) {
      key.loads[0] = load<std::uint32_t>(begin);
      key.loads[1] = load<std::uint32_t>(end - 4);
    } else {
      key.loads[0] = static_cast<unsigned char>(begin[0]);
      key.loads[1] = static_cast<unsigned char>(begin[word.size() / 2]);
      key.loads[2] = static_cast<unsigned char>(end[-1]);
    }
    return key;
  }

  // Returns nothing when the word is not cached; a cached word may have no tokens.
  std::optional<std::span<const TokenId>> find(const Key& key) const {
    const Slot& slot = slots_[place_of(key)];
    if (slot.word_bytes != key.bytes || slot.loads != key.loads) return std::nullopt;
    return std::span(slot.tokens.data(), slot.token_count);
  }

  void insert(const Key& key, std::span<const TokenId> tokens) {
    if (tokens.size() > kTokensMax) return;
    Slot& slot = slots_[place_of(key)];
    slot.loads = key.loads;
    slot.word_bytes = key.bytes;
    slot.token_count = static_cast<std::uint8_t>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), slot.tokens.begin());
  }

 private:
  static constexpr std::size_t kSlotBits = 15;  // 2 MiB

  struct alignas(64) Slot {
    std::array<std::uint64_t, 4> loads{};
    std::array<TokenId, kTokensMax> tokens{};
    std::uint8_t word_bytes = 0;  // 0: free
    std::uint8_t token_count = 0;
  };
  static_assert(sizeof(Slot) == 64);

  template <class Word>
  static Word load(const char* bytes) {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }

  static std::size_t place_of(const Key& key) {
    std::uint64_t hash = key.loads[0] * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (hash >> 29) ^ key.loads[1]) * 0xBF58476D1CE4E5B9u;
    if (key.bytes > 16 || key.bytes < 4) {
      hash = (hash ^ (hash >> 32) ^ key.loads[2]) * 0x94D049BB133111EBu;
      hash = (hash ^ (hash >> 29) ^ key.loads[3]) * 0xBF58476D1CE4E5B9u;
    }
    return (hash ^ key.bytes * 0x9E3779B97F4A7C15u) >> (64 - kSlotBits);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << kSlotBits);
};

}  // namespace pagoda::text
