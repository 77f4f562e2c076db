// Handovers bring prompts that were computed here to where other servers find them, and tell how
// far they are there: never more than is leased to them, or than a shared store says that it has.
//
//   wait for the pages' address -> lease them -> tell
//                                        \-> write what the store lacks -> ask the store -> tell
//
// Where other servers fetch pages from this one, they are leased; a shared store gets them as well,
// and nobody waits for it unless not all could be leased.
//
// Each step is bounded by one deadline; what is not there by then is not promised. Thread rule: the
// engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/reply.h"
#include "engine/tiers/page_leases.h"
#include "engine/tiers/page_search.h"
#include "engine/tiers/page_writer.h"
#include "engine/tiers/tier_options.h"
#include "kv/cache.h"

namespace pagoda::engine {

// The whole blocks of a prompt, from the first.
struct Handover {
  std::vector<kv::NodeId> nodes;
  std::vector<kv::BlockHash> hashes;
  std::vector<kv::memory::AttentionSpec> groups;  // which tokens each keeps
  std::function<void(HandoverOutcome)> done;      // called once, by begin(), poll() or end_all()
};

class Handovers {
 public:
  // All arguments must outlive the handovers.
  Handovers(const TierOptions& options, kv::Cache& cache, PageWriter& writer, PageLeases& leases,
            kv::StoreTicket& tickets);

  void begin(Handover handover, std::int64_t now_ns);
  // False: the report is of no question of these handovers.
  bool take(const kv::StoreReport& report);
  void poll(std::int64_t now_ns);
  // Pages have no address and will have none.
  void drop_space() { has_dropped_space_ = true; }
  // Tells everyone what is there as far as is known.
  void end_all();

  bool is_idle() const { return open_.empty() && lookups_.empty(); }
  std::size_t size() const { return open_.size(); }

 private:
  enum class Stage : std::uint8_t { kUnnamed, kWriting, kAsking, kTold };
  struct Open {
    Handover handover;
    Stage stage = Stage::kUnnamed;
    std::int64_t deadline_ns = 0;
    std::size_t settled = 0;  // blocks before it are written, or will not be
    std::optional<PageSearch> search = {};
    std::uint64_t blocks_leased = 0;
    kv::StoreTicket lookup = 0;  // a question that the store has not answered; 0: none
  };

  void advance(Open& open);
  void begin_leases(Open& open);
  bool is_written(Open& open) const;
  void begin_asking(Open& open);
  void ask_on(Open& open);
  void tell(Open& open, bool in_time);
  std::uint64_t blocks_known(const Open& open) const;
  PageSearch search_of(const Open& open) const;

  const TierOptions& options_;
  kv::Cache& cache_;
  PageWriter& writer_;
  PageLeases& leases_;
  kv::StoreTicket& tickets_;
  kv::PageStore* shared_ = nullptr;  // the nearest store that other servers share; nullptr: none
  bool has_dropped_space_ = false;
  std::vector<std::unique_ptr<Open>> open_;
  std::unordered_map<kv::StoreTicket, Open*> lookups_;  // nullptr: nobody waits for the answer
};

}  // namespace pagoda::engine
