// BackendOptions are the options of every backend, whichever device computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "kv/events/event_ring.h"
#include "kv/evict/policy.h"
#include "kv/kv_policy.h"
#include "model/config.h"
#include "model/kv_cache_dtype.h"
#include "model/packed_weights.h"
#include "model/weights.h"
#include "sched/options.h"
#include "speculate/drafter.h"
#include "speculate/options.h"

namespace pagoda::engine {

// DraftModelParts are a smaller model that drafts tokens beside the one that is served.
struct DraftModelParts {
  std::string name;
  const model::Config* config = nullptr;
  const model::Weights* weights = nullptr;
  model::PackProgress on_pack = {};
  std::shared_ptr<const void> owner = {};  // keeps config and weights
};

struct BackendOptions {
  std::size_t threads = 0;  // that compute on a CPU, or sample beside a GPU; 0: every usable core
  model::KvCacheDtype kv_cache_dtype;
  std::uint32_t block_tokens = 16;
  std::optional<std::uint64_t> kv_bytes;  // unset: a share of the memory that the device has free
  std::uint64_t context_tokens = 0;       // 0: the model's own
  bool prefix_caching = true;
  const kv::EvictionPolicy* kv_eviction = &kv::lru_policy();
  kv::KvPolicy kv_policy = {};  // of requests that name none
  bool live_curve = false;      // measures what other cache sizes and policies would have given
  // Shares of the cache's blocks; 0: none, or no limit.
  double retain_share = 0;             // that one tenant's requests may retain
  bool sessions = false;               // requests may name sessions
  double session_timeout_s = 0;        // after which an unused session ends; 0: never
  double quota_share = 0;              // beyond which a tenant loses blocks first
  double quota_share_public = 0;       // beyond which public blocks are lost first
  kv::EventRing* kv_events = nullptr;  // outlives the backend; nullptr: no events are recorded
  bool hash_blocks = false;            // blocks get hashes, for tiers outside the pool
  bool find_by_hash = false;           // ... and are found by them, for other servers
  sched::SchedulerOptions scheduler;
  speculate::SpeculationOptions speculation = {};
  speculate::Drafter* drafter = nullptr;  // for measurements and tests: see Speculator
  // It computes on the model's device, and takes the share of KV memory in which it holds as many
  // tokens as the model.
  std::optional<DraftModelParts> draft_model = {};
  std::string model_name;           // part of the namespace
  std::vector<TokenId> end_tokens;  // end tokens of the model
  model::PackProgress on_pack = {};
  // For tests: receives two pages that hold the same tokens, both computed, of which the cache
  // keeps one.
  std::function<void(std::span<const std::byte> mine, std::span<const std::byte> existing)>
      on_deduplicate = {};
};

}  // namespace pagoda::engine
