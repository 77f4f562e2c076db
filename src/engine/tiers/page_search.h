// PageSearch finds which store has which page of a prompt, and how far stores reach together, by
// lookups to one store after another, which the caller sends.
//
//   1. From where the pool ends forwards, full groups: every page counts.
//   2. From there backwards, window groups: those pages that the token behind the end still sees,
//      its attention sinks among them.
//      Where one of them is missing, no end behind it will do, and the search goes on before it.
//
// Without a full group the search begins at the prompt's end, and stops after some gaps. Where it
// has found nothing by then, it begins once more where the first group's pages end that stores have
// without a gap: there an earlier, shorter prompt ended.
//
// Stores are asked in turn until none of them goes on from where the others end. A block's pages of
// full groups come from one store, and those of windows from one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/memory/cache_groups.h"
#include "kv/tiers/page_store.h"

namespace pagoda::engine {

// The inputs belong to one model in one cache.
struct PageSearchInputs {
  kv::SpaceId space;
  std::span<const kv::memory::AttentionSpec> groups;
  std::uint32_t block_tokens = 0;
  std::size_t stores = 0;
};

class PageSearch {
 public:
  struct Lookup {
    std::size_t store = 0;
    std::vector<kv::PageKey> keys;
  };

  // The pool has the blocks before `first`. Hashes and groups must outlive the search.
  PageSearch(const PageSearchInputs& inputs, std::span<const kv::BlockHash> hashes,
             std::uint64_t first);

  // Nothing: the search has ended.
  std::optional<Lookup> next();
  // Takes how many of the first keys of the last lookup are there, without a gap.
  void record_found(std::size_t keys_found);

  // Blocks before the end are in the pool or in a store, in every group in which they are seen.
  std::uint64_t end() const { return end_; }
  // Returns the store of a block in [first, end) that the group needs.
  std::uint8_t store_of(std::uint64_t block, std::uint32_t group) const {
    return (inputs_.groups[group].window == 0 ? full_stores_ : window_stores_)[block - first_];
  }

 private:
  enum class Stage : std::uint8_t { kFull, kWindows, kFirstGroup, kEnded };

  bool is_needed(std::uint64_t block, std::uint32_t group) const;
  kv::memory::BlocksKept kept(const kv::memory::AttentionSpec& spec) const;
  void add_keys(std::uint64_t block, bool of_windows, Lookup& lookup) const;
  std::size_t pages_of_windows(std::uint64_t block) const;
  std::uint64_t windows_begin() const;
  void begin_windows();
  void begin_first_group();

  PageSearchInputs inputs_;
  std::span<const kv::BlockHash> hashes_;
  std::uint64_t first_;
  std::uint64_t end_;
  Stage stage_ = Stage::kFull;
  std::uint64_t windows_from_ = 0;  // windows have what they need of [windows_from_, end_)
  std::uint32_t gaps_ = 0;
  bool looked_at_first_group_ = false;
  std::size_t full_groups_ = 0;
  std::size_t store_asked_ = 0;
  std::size_t stores_empty_ = 0;             // stores asked since one had something
  std::vector<std::uint8_t> full_stores_;    // [block - first_]
  std::vector<std::uint8_t> window_stores_;  // [block - first_]
};

}  // namespace pagoda::engine
