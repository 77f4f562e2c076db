// TierOptions are the engine's options of the tiers outside the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/tiers/load_choice.h"
#include "engine/tiers/load_record.h"
#include "kv/ids.h"
#include "kv/tiers/page_lease.h"
#include "kv/tiers/page_store.h"

namespace pagoda::engine {

// WriteMode says when a page is written to a tier that lacks it.
enum class WriteMode : std::uint8_t {
  kUse,      // when it is used for the second time, before it is evicted, and at a clean stop
  kThrough,  // when it is computed
  kOff,      // never: tiers are read only
};

struct TierOptions {
  // Stores, nearest first; at most kTiersMax. They outlive the engine.
  std::vector<kv::PageStore*> stores;
  WriteMode write = WriteMode::kUse;
  LoadMode load = LoadMode::kAuto;

  // Returns a page's bytes. Pages of one cache have one size.
  std::function<std::span<std::byte>(kv::BlockId)> page_at = {};
  // Returns the tag of a tenant's private pages (OwnerId: its number); without it pages have no
  // owner.
  std::function<kv::OwnerTag(kv::OwnerId)> owner_tag = {};
  // Asked before pages go to stores. False: a file of the model has changed since it was opened, so
  // that pages may be of other weights; nothing is written from then on.
  std::function<bool()> is_model_unchanged = {};

  std::uint32_t loads_max = 16;            // prompts that are loaded at a time
  std::uint32_t reads_running_max = 64;    // pages
  std::uint32_t writes_running_max = 32;   // pages, to each store
  std::uint32_t writes_queued_max = 8192;  // blocks, for each store
  // How long a prompt that is handed over waits for its pages to be in a shared store.
  std::int64_t handover_ns_max = 10'000'000'000;
  // Serves pages of the pool to other servers, and outlives the engine; nullptr: nobody does.
  kv::PageLessee* lessee = nullptr;
  double lease_share = 0.25;                   // of the pool, that leases may hold
  std::int64_t space_wait_ns = 1'000'000'000;  // how long loads wait for the space's id
  double tokens_per_second = 0;                // as measured by an earlier process; 0: unknown
};

}  // namespace pagoda::engine
