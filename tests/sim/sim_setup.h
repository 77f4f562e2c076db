// SimSetup is what a seed stands for: an engine's options and the requests that will come.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "engine/core.h"
#include "sim/toy_model.h"

namespace pagoda::sim {

// Dice draw numbers one after another from a seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  // Draws a number uniform in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + random_bits(seed_, 7, count_++) % (high - low + 1);
  }
  bool one_in(std::uint64_t n) { return between(1, n) == 1; }
  template <class T>
  const T& pick(const std::vector<T>& of) {
    return of[between(0, of.size() - 1)];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

// SimStoreOptions set up a tier (sim_store.h).
struct SimStoreOptions {
  std::uint64_t pages_max = 100;
  std::int64_t latency_ns_max = 5000;
  bool asks = false;                // lookups take time as well
  std::uint32_t one_fails_in = 20;  // 0: none
  std::uint32_t operations_max = 64;
};

struct PlannedRequest {
  std::int64_t arrival_ns = 0;
  std::int64_t cancel_ns = 0;  // 0: never
  engine::Request request;
  std::optional<TokenId> last_token = {};  // of its text: that of a ToyWatch; nothing: it has none
};

// A tenant's limits change, whatever runs and waits.
struct LimitChange {
  std::int64_t at_ns = 0;
  sched::TenantId tenant;
  sched::TenantLimits limits;
};

struct SimSetup {
  ToyModel model;
  kv::CacheOptions cache;
  engine::CoreOptions core;
  std::vector<sched::TenantLimits> tenants;  // the tenants beside tenant 0
  std::vector<LimitChange> limit_changes;    // ordered by time
  std::uint32_t launches_ahead = 0;
  std::vector<SimStoreOptions> stores;   // tiers outside the pool
  std::int64_t space_known_ns = 0;       // pages have no address outside before this time
  bool crossed = false;                  // requests ask for the same tokens in several regions
  std::int64_t removal_ns = 0;           // when tenant 1 is removed everywhere; 0: never
  bool drafts = false;                   // drafts of every kind, right and wrong (sim_drafter.h)
  std::uint32_t draft_model_blocks = 0;  // of the cache of a draft model; 0: no model drafts
  std::uint32_t draft_vocabulary = 0;    // its vocabulary may lack tokens
  std::int64_t step_ns_max = 1000;
  std::int64_t retain_ns_max = 100'000;
  std::vector<PlannedRequest> requests;  // ordered by arrival
};

SimSetup draw_setup(std::uint64_t seed);

}  // namespace pagoda::sim
