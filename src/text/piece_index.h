// Maps the bytes of a piece to its number: a flat hash table, filled once, then only read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "text/text_table.h"

namespace pagoda::text {

class PieceIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // `pieces` must outlive the index and may only grow.
  explicit PieceIndex(const TextTable& pieces) : pieces_(&pieces), slots_(16, Slot{0, kNone}) {}

  // Returns `number`, or the number under which the same bytes were inserted before.
  std::uint32_t insert(std::uint32_t number) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    const std::string_view piece = (*pieces_)[number];
    const std::uint32_t hash = hash_of(piece);
    Slot& slot = slots_[place_of(piece, hash)];
    if (slot.number != kNone) return slot.number;
    slot = {hash, number};
    ++count_;
    bytes_max_ = std::max(bytes_max_, piece.size());
    return number;
  }

  std::uint32_t find(std::string_view piece) const {
    if (piece.size() > bytes_max_) return kNone;
    return slots_[place_of(piece, hash_of(piece))].number;
  }

 private:
  struct Slot {
    std::uint32_t hash;
    std::uint32_t number;
  };

  static std::uint32_t hash_of(std::string_view piece) {
    std::uint64_t hash = piece.size() * 0x9E3779B97F4A7C15u;
    std::size_t at = 0;
    for (; at + 8 <= piece.size(); at += 8) hash = mix(hash, piece.data() + at, 8);
    if (at < piece.size()) hash = mix(hash, piece.data() + at, piece.size() - at);
    return static_cast<std::uint32_t>(hash >> 32);
  }

  static std::uint64_t mix(std::uint64_t hash, const char* bytes, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
    return hash ^ (hash >> 32);
  }

  // Returns the slot that holds `piece`, or the free slot where it would go.
  std::size_t place_of(std::string_view piece, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = hash & mask;
    while (slots_[place].number != kNone &&
           (slots_[place].hash != hash || (*pieces_)[slots_[place].number] != piece)) {
      place = (place + 1) & mask;
    }
    return place;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2, Slot{0, kNone});
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      std::size_t place = slot.hash & mask;
      while (slots_[place].number != kNone) place = (place + 1) & mask;
      slots_[place] = slot;
    }
  }

  const TextTable* pieces_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t count_ = 0;
  std::size_t bytes_max_ = 0;
};

}  // namespace pagoda::text
