// What the engine knows of the tiers outside the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/tiers/load_choice.h"
#include "engine/tiers/load_record.h"
#include "kv/ids.h"
#include "kv/tiers/page_store.h"

namespace pagoda::engine {

// When a page is written to a tier that does not have it.
enum class WriteMode : std::uint8_t {
  kUse,      // when it is used for the second time, before it is evicted, and at a clean stop
  kThrough,  // when it is computed
  kOff,      // never: tiers are read only
};

struct TierOptions {
  // Nearest first; at most kTiersMax. They outlive the engine.
  std::vector<kv::PageStore*> stores;
  WriteMode write = WriteMode::kUse;
  LoadMode load = LoadMode::kAuto;

  // Where a page's bytes are. Pages of one cache have one size.
  std::function<std::span<std::byte>(kv::BlockId)> page_at = {};
  // The tag of a tenant's private pages (OwnerId: its number); all are nobody's without.
  std::function<kv::OwnerTag(kv::OwnerId)> owner_tag = {};

  std::uint32_t loads_max = 16;                // prompts that are loaded at a time
  std::uint32_t reads_running_max = 64;        // pages
  std::uint32_t writes_running_max = 32;       // pages, to each store
  std::uint32_t writes_queued_max = 8192;      // blocks, for each store
  std::int64_t space_wait_ns = 1'000'000'000;  // for the space's id, when it is not known yet
  double tokens_per_second = 0;                // as measured by an earlier process; 0: unknown
};

}  // namespace pagoda::engine
