// The identities of blocks that left, newest first: at most so many, in memory taken at once.
//
// 28 bytes a ghost: a record of 24 and a chain head of 4. Every call takes constant time (chains of
// a keyed hash).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pagoda::kv {

class GhostList {
 public:
  explicit GhostList(std::uint32_t ghosts_max);

  std::uint32_t size() const { return size_; }
  // Remembers it as the newest; at the bound the oldest makes way. One that is known is renewed.
  // `note` comes back with it.
  void insert(std::uint64_t identity, std::uint32_t note = 0);
  bool contains(std::uint64_t identity) const { return find(identity) != kNone; }
  // False when it was not known.
  bool erase(std::uint64_t identity) { return take(identity).has_value(); }
  // The note of one that was known and is no more.
  std::optional<std::uint32_t> take(std::uint64_t identity);
  void erase_oldest();
  // Stops the program when lists and count contradict each other. Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Ghost {
    std::uint32_t identity_low = 0;
    std::uint32_t identity_high = 0;
    std::uint32_t chain = kNone;  // the next of the same head; of an unused record: the next unused
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
    std::uint32_t note = 0;

    std::uint64_t identity() const { return std::uint64_t{identity_high} << 32 | identity_low; }
  };
  static_assert(sizeof(Ghost) == 24);

  std::uint32_t& head(std::uint64_t identity) { return heads_[identity % heads_.size()]; }
  std::uint32_t find(std::uint64_t identity) const;
  void take_out(std::uint32_t at);

  std::vector<Ghost> ghosts_;
  std::vector<std::uint32_t> heads_;
  std::uint32_t unused_ = kNone;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t size_ = 0;
};

}  // namespace pagoda::kv
