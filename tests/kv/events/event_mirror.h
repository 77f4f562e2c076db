// A copy of the tree kept by events alone, as a router outside would keep it, and its comparison
// with the snapshot that the cache draws of itself.
//
// It follows from the first event on. Where events were lost it knows nothing until it has followed
// a whole snapshot; a snapshot that it did not need must give what it has already.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kv/cache.h"

namespace pagoda::kv {

class EventMirror {
 public:
  void apply(const CacheEvent& event, std::span<const TokenId> tokens);

  // Is the copy whole? Then it must be the snapshot.
  bool knows() const { return copy_.has_value(); }
  std::optional<std::string> difference(const Cache& cache) const;
  // The first event that contradicts what is known, if any did.
  const std::optional<std::string>& contradiction() const { return contradiction_; }

  std::uint64_t snapshots() const { return snapshots_; }
  std::uint64_t recoveries() const { return recoveries_; }
  std::uint64_t clears() const { return clears_; }

 private:
  struct Block {
    std::string parent;
    bool is_public = true;
    std::vector<std::uint32_t> tokens;
    std::set<std::uint32_t> pages;  // groups

    bool operator==(const Block&) const = default;
  };
  using Copy = std::map<std::string, Block>;  // by name

  static bool add(Copy& copy, const CacheEvent& event, std::span<const TokenId> tokens);
  static bool remove(Copy& copy, const CacheEvent& event);
  static std::optional<std::string> apply_to(Copy& copy, const CacheEvent& event,
                                             std::span<const TokenId> tokens);
  void end_snapshot();
  void contradict(const std::string& what) {
    if (!contradiction_) contradiction_ = what;
  }

  std::optional<Copy> copy_ = Copy();
  std::optional<Copy> coming_;  // what the running snapshot and the events since its begin give
  std::optional<std::string> contradiction_;
  std::uint64_t snapshots_ = 0;
  std::uint64_t recoveries_ = 0;
  std::uint64_t clears_ = 0;
};

}  // namespace pagoda::kv
