// The eviction log remembers blocks that left the cache: when, after how long unused, why, and for
// whose request.
//
// The last so many evictions, in memory taken at once: a ring in the order of leaving, in which
// identities (block_identity.h) are found through chains of a keyed hash, newest first. What
// leaves again is written again; the older record is found no more and falls out in its turn. Both
// calls take constant time. 36 bytes an eviction: a record of 32 and a chain's head of 4.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/explanation.h"

namespace pagoda::kv {

struct EvictionRecord {
  std::int64_t left_ns = 0;
  std::uint32_t idle = 0;     // in units of 10 ms
  std::uint32_t account = 0;  // that the room was made for
  EvictionCause cause = EvictionCause::kRoom;

  bool operator==(const EvictionRecord&) const = default;
};

class EvictionLog {
 public:
  explicit EvictionLog(std::uint32_t eviction_records_max);

  void add(std::uint64_t identity, const EvictionRecord& record);
  // Its latest record.
  std::optional<EvictionRecord> find(std::uint64_t identity) const;
  // The time of the last record that was forgotten.
  std::optional<std::int64_t> forgotten_until_ns() const { return forgotten_until_ns_; }

  // Stops the program when ring and chains contradict each other. Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Record {
    std::uint64_t identity = 0;
    std::int64_t left_ns = 0;
    std::uint32_t idle = 0;
    std::uint32_t account = 0;
    std::uint32_t older = kNone;  // in the chain
    EvictionCause cause = EvictionCause::kRoom;
  };
  static_assert(sizeof(Record) == 32);

  // Identities are as good as random: their high bits choose, without a division.
  std::size_t chain_of(std::uint64_t identity) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>(Wide{identity} * heads_.size() >> 64);
  }
  void forget_oldest();

  std::vector<Record> records_;
  std::vector<std::uint32_t> heads_;
  std::uint64_t added_ = 0;  // eviction n is record n % size
  std::optional<std::int64_t> forgotten_until_ns_;
};

}  // namespace pagoda::kv
