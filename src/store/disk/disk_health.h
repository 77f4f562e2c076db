// DiskHealth decides whether a disk store reads and writes, by what became of its reads, writes and
// syncs, and says why not.
//
// Thread rule: the caller holds a lock.
#pragma once

#include <cstdint>
#include <string>

#include "kv/tiers/page_store.h"
#include "store/circuit_breaker.h"

namespace pagoda::store {

class DiskHealth {
 public:
  // So many failures in a row switch reads, writes or syncs off for a while.
  DiskHealth(std::uint32_t failures_max, std::int64_t retry_after_ns)
      : retry_after_ns_(retry_after_ns),
        reading_(failures_max, retry_after_ns),
        writing_(failures_max, retry_after_ns),
        syncing_(failures_max, retry_after_ns) {}

  bool can_read(std::int64_t now_ns) const { return reading_.is_on(now_ns); }
  bool can_write(std::int64_t now_ns) const {
    return writing_.is_on(now_ns) && syncing_.is_on(now_ns);
  }
  bool can_sync(std::int64_t now_ns) const { return syncing_.is_on(now_ns); }
  // True: the index was read, or nothing is known against it yet.
  bool has_index() const { return load_error_.empty(); }

  // A read or a write ended. `error` is the system's, 0: none.
  void note_request(bool is_write, kv::StoreFault fault, int error, std::int64_t now_ns);
  // A sync ended with an error of the system; 0: none.
  void note_sync(int error, std::int64_t now_ns);
  void note_scrub_failed(std::int64_t now_ns) { reading_.fail(now_ns, "the scrub cannot read"); }
  // The index was read, or cannot be.
  void note_load(int error);
  // True once a full disk has been full for a while: the store may try to grow again.
  bool take_growth(std::int64_t now_ns);

  // Says what is wrong, for people; empty: nothing.
  const std::string& condition() const;

 private:
  const std::int64_t retry_after_ns_;
  CircuitBreaker reading_;
  CircuitBreaker writing_;
  CircuitBreaker syncing_;
  std::string load_error_;
  std::int64_t full_since_ns_ = 0;  // 0: the disk is not full
};

}  // namespace pagoda::store
