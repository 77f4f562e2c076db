// A survey reads a store from outside, without changing a byte: what its slabs hold and whether
// they are whole. Sums cover encrypted bytes, so that no key is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/disk/format.h"
#include "store/disk/space_names.h"

namespace pagoda::store {

struct SlabSurvey {
  SlotGeometry geometry;
  Cipher cipher = Cipher::kNone;
  bool was_closed = false;  // its last user closed it with everything synced
  std::uint64_t slots = 0;
  std::uint64_t bytes_on_disk = 0;  // of slab and index
  std::uint64_t pages = 0;
  std::map<kv::SpaceId, std::uint64_t> pages_by_space;
  std::map<kv::OwnerTag, std::uint64_t> pages_by_owner;
  std::uint64_t oldest_use_us = 0;  // since 1970; 0: no pages
  std::uint64_t newest_use_us = 0;
  // Results of a verification.
  std::uint64_t pages_whole = 0;
  std::uint64_t pages_damaged = 0;
  std::uint64_t pages_stale = 0;   // a crash left a record without its page: a miss, no damage
  std::uint64_t pages_unread = 0;  // the disk refused the read
};

struct StoreSurvey {
  bool is_in_use = false;  // another process uses the store
  std::vector<SlabSurvey> slabs;
  SpaceNames spaces;  // as far as they are known
};

struct SurveyOptions {
  std::string path;
  bool verify = false;  // reads every page; an error while the store is in use
  std::function<bool(std::uint64_t done, std::uint64_t all)> go_on;  // in pages; false: stop
};

Result<StoreSurvey> survey_store(const SurveyOptions& options);

}  // namespace pagoda::store
