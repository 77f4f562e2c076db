// Measures how fast pages go into a store and come back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

struct SpeedTrial {
  std::size_t pages = 256;
  std::size_t page_bytes = 0;
  std::size_t pages_in_flight = 64;  // pages asked for at a time
  std::int64_t timeout_ns = 60'000'000'000;
};

struct StoreSpeed {
  std::size_t pages = 0;
  std::size_t page_bytes = 0;
  double write_s = 0;
  double read_s = 0;
  double write_cpu_s = 0;  // CPU time of this process, all its threads
  double read_cpu_s = 0;
  std::size_t pages_failed = 0;  // pages not written, or not read back as they were

  double write_pages_per_s() const { return static_cast<double>(pages) / write_s; }
  double read_pages_per_s() const { return static_cast<double>(pages) / read_s; }
  double write_bytes_per_s() const;
  double read_bytes_per_s() const;
};

// Writes pages of a space that no model has, waits until they are durable, reads all of them. The
// trial has the store to itself meanwhile: it sets on_report(). The pages stay until the store
// evicts them. An error when the trial takes too long.
Result<StoreSpeed> measure_speed(kv::PageStore& store, const SpeedTrial& trial);

}  // namespace pagoda::store
