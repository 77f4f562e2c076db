// Simulates a whole engine from one seed: core, scheduler and cache over the toy model and a
// virtual clock. Requests arrive, share prefixes, fork, are cancelled, run out of time and out of
// blocks; every sequence must equal that of its request alone, and every invariant must hold after
// every step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/core.h"
#include "sim/sim_store.h"
#include "sim/toy_runner.h"

namespace pagoda::sim {

struct SimOptions {
  std::uint64_t seed = 0;
  Sabotage sabotage = Sabotage::kNone;
  StoreSabotage store_sabotage = StoreSabotage::kNone;
  std::ostream* trace = nullptr;  // receives what happens, step by step
};

struct SimOutcome {
  std::string failure;  // empty: every check passed
  std::uint64_t steps = 0;
  std::uint64_t answers = 0;
  std::uint64_t answers_whole = 0;  // sequences that ended on their own
  std::uint64_t texts_ended = 0;    // of those: before their tokens would have ended them
  std::uint64_t preemptions = 0;
  std::uint64_t answers_dropping = 0;      // whose KV policy may have dropped pages by attention
  std::uint64_t dropping_preemptions = 0;  // of those
  std::uint64_t tokens_cached = 0;
  std::uint64_t forks = 0;
  std::uint64_t pauses = 0;    // sequences whose reader did not keep up, added up over steps
  std::uint64_t retained = 0;  // requests whose retention was granted
  std::uint64_t retain_refused = 0;
  std::array<std::uint64_t, kv::kMissReasons> reasons = {};  // sequences explained, by reason
  std::uint64_t tokens_loaded = 0;                           // loaded from tiers
  std::uint64_t pages_read = 0;                              // read from tiers
  std::uint64_t pages_written = 0;
  std::uint64_t tier_faults = 0;
  std::uint64_t removals = 0;       // removals of a tenant
  std::uint64_t pages_removed = 0;  // removed from tiers
  std::uint64_t removals_late = 0;  // removals that waited for a page to be written
  std::uint64_t drafts = 0;
  std::uint64_t draft_tokens = 0;
  std::uint64_t drafts_accepted = 0;        // tokens
  std::uint64_t model_drafts_accepted = 0;  // tokens of a draft model, where nothing else drafts
  bool timed = false;                       // there was an ITL target, and steps were predicted
  bool sabotaged = false;
};

SimOutcome simulate(const SimOptions& options);

}  // namespace pagoda::sim
