// PageReads are the reads of loads that stores have not reported yet: which page of which load a
// ticket stands for, and how fast each store gives pages.
//
// Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/rate_meter.h"
#include "engine/tiers/load.h"
#include "engine/tiers/tier_options.h"
#include "kv/tiers/page_store.h"

namespace pagoda::engine {

class PageReads {
 public:
  struct Pending {
    Load* load;
    std::uint64_t block;
    std::size_t store;
  };

  // All arguments must outlive the reads. Tickets are drawn from a counter that others draw from,
  // too.
  PageReads(const TierOptions& options, kv::StoreTicket& tickets)
      : options_(options), tickets_(tickets), rates_(options.stores.size()) {}

  // True: as many pages are on their way as may be.
  bool is_full() const { return pending_.size() >= options_.reads_running_max; }
  // Reads a page of the load's block; the load stays until the read is reported.
  void begin(const Pending& read, kv::PageLabel label, std::span<std::byte> page,
             std::int64_t now_ns);
  // Ends the read of a report; nothing: the report is of no read.
  std::optional<Pending> end(const kv::StoreReport& report, std::int64_t now_ns);
  // Asks stores to cancel the load's reads. Each is still reported.
  void cancel(const Load& load) const;

  std::size_t stores() const { return rates_.size(); }
  // Recent rate of a store; unknown before its first page.
  std::optional<double> bytes_per_second(std::size_t store) const {
    return rates_[store].units_per_second();
  }
  // Time in which any page was on its way from the store.
  double seconds_reading(std::size_t store) const { return rates_[store].seconds_busy(); }

 private:
  const TierOptions& options_;
  kv::StoreTicket& tickets_;
  std::unordered_map<kv::StoreTicket, Pending> pending_;
  std::vector<RateMeter> rates_;  // [store], bytes
};

}  // namespace pagoda::engine
