// A seeded simulation of the cache against the simplest truth there is.
//
// Memory is simulated: every row of every page holds a digest of all tokens up to it. Requests
// open, reserve, compute, fork and end at random over a small pool; any of them may be cancelled
// between any two of these; copies land late and are reported later still; pages are pinned for
// a while, to be copied out; beginnings are retained; now and then everything idle is cleared.
// After every operation each row that an open sequence may read is compared with the digest of its
// own tokens, and every invariant is checked. A stale, foreign or shifted block, a torn copy or a
// block freed too early shows as a wrong digest.
//
// Every match is compared with the oracle (cache_oracle.h): never longer than what the client may
// see, and with `exact`, where nothing is ever evicted, exactly as long; what explain() says of it
// agrees with it (its reasons are held against the truth in explain_model_test.cc). What
// blocks_needed() says is what is granted or refused, and what it takes. Names are those of the
// naive chain. The live curve counts what was asked for, says what may be said, and changes
// nothing. A copy of the tree that is kept by events alone, also after losses by a snapshot, is
// the cache's snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/cache.h"

namespace pagoda::kv {

// Deliberate bugs, to show that the simulation turns red.
enum class Sabotage : std::uint8_t {
  kNone,
  kStaleBlock,     // a row keeps what the block held before
  kForeignBlock,   // a table entry points to another block
  kShiftedRows,    // a copy is off by one row
  kTornCopy,       // a copy stops half way
  kLeakedPin,      // a copy's pin is never given back
  kEarlyPin,       // a copy's pin is given back before the copy has landed
  kEarlyUnpin,     // a page's pin is given back before it is copied out
  kForeignRegion,  // a match is asked for as another tenant
  kMissedEvent,    // an event does not reach the mirror
};

struct SimOptions {
  std::uint64_t seed = 0;
  std::uint32_t blocks = 24;
  std::uint32_t block_tokens = 4;
  std::vector<memory::AttentionSpec> groups = {{}};
  const EvictionPolicy* policy = &lru_policy();
  KvPolicy kv_policy = {};  // of some requests; full: of none
  std::uint64_t operations = 80;
  bool tenants = false;
  std::uint64_t quota_blocks = 0;   // of every region
  std::uint64_t retain_blocks = 0;  // of every salt
  std::uint32_t eviction_records_max = 0;
  bool copies_out = false;  // pages, by their names
  bool hash_blocks = false;
  // A ring of so many events (0: none) is read now and then into a mirror (events/event_mirror.h).
  std::uint32_t event_ring = 0;
  bool share = true;
  bool live_curve = false;
  // The pool must be so large that nothing is evicted; all clients have a salt or none has, and all
  // have one split into public and private: where it differs, the choice between the public branch
  // and one's own (README: I2) may give less than the longest (isolation_test.cc shows it).
  bool exact = false;
  // Instead of the seed: each byte is a decision, and the run ends with them.
  std::optional<std::span<const std::uint8_t>> script;
  Sabotage sabotage = Sabotage::kNone;
};

struct SimReport {
  std::optional<std::string> failure;  // what went wrong, with the operations that led there
  std::uint64_t tokens_matched = 0;
  std::uint64_t blocks_evicted = 0;
  std::uint64_t blocks_deduplicated = 0;
  std::uint64_t refusals = 0;
  std::uint64_t pages_out = 0;
  std::uint64_t hashes_verified = 0;
  std::uint64_t mirrors_compared = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t snapshots_that_mended = 0;  // after a loss
  std::uint64_t clears_told = 0;
  std::uint64_t retained = 0;
  std::uint64_t retain_refused = 0;
  std::uint64_t cancelled_with_room = 0;    // between reserve and commit
  std::uint64_t cancelled_with_copies = 0;  // before its copies landed
  std::uint64_t blocks_asked = 0;           // of prompts, as the live curve counts them
  std::string history;                      // the operations and what came of them
};

// Prints the operations so far when an invariant stops the program.
SimReport simulate(const SimOptions& options);

}  // namespace pagoda::kv
