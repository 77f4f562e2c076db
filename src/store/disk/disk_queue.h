// DiskQueue holds the requests of a disk store on their way: which wait, which a worker has, and
// whose time is up. Every request ends with one report.
//
//            next()            end()
//   waiting -------> in flight ------> reported
//      |                 |  expire(): too late, and the caller's bytes are not in use
//      +-----------------+-----------> reported
//        expire(): cancelled or too late
//
// Thread rule: the caller holds a lock; the queue knows no thread and no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "kv/tiers/page_store.h"

namespace pagoda::store {

struct DiskRequest {
  std::uint64_t number = 0;  // in the order of calls
  kv::StoreTicket ticket = 0;
  kv::PageLabel label;
  std::span<std::byte> into;        // destination of a read
  std::span<const std::byte> from;  // source of a write
  bool is_write = false;
  bool is_cancelled = false;
  bool is_copying = false;   // a worker is reading or writing the caller's bytes
  bool is_reported = false;  // too late: the caller's bytes are not touched any more
  std::int64_t asked_ns = 0;
};

struct DiskQueueLimits {
  std::size_t writes_waiting_max = 0;
  std::int64_t request_limit_ns = 0;  // a request that takes longer ends with kTimeout
  std::int64_t lookup_limit_ns = 0;   // a lookup that takes longer finds nothing
};

class DiskQueue {
 public:
  // Called once for every request and every lookup, when it ends.
  using Report =
      std::function<void(kv::StoreTicket ticket, kv::StoreFault fault, std::size_t keys_found)>;

  DiskQueue(const DiskQueueLimits& limits, Report report)
      : limits_(limits), report_(std::move(report)) {}

  void put_read(kv::PageRead read, std::int64_t now_ns);
  // The queue must not be full of writes.
  void put_write(kv::PageWrite write, std::int64_t now_ns);
  bool is_full_of_writes() const { return writes_.size() >= limits_.writes_waiting_max; }
  void put_lookup(kv::StoreTicket ticket, std::span<const kv::PageKey> keys, std::int64_t now_ns);

  // Marks waiting reads of these tickets, or waiting writes of the owner (nothing: all writes), for
  // the next expire().
  void cancel_reads(std::span<const kv::StoreTicket> tickets);
  void cancel_writes(const std::optional<kv::OwnerTag>& owner);
  // While writes are held none of them begins.
  void hold_writes(bool are_held) { are_writes_held_ = are_held; }

  // Returns the next request, which is in flight until end(); nothing when none may begin. Reads go
  // before writes, but one of four requests is a write, if one waits.
  std::unique_ptr<DiskRequest> next();
  // True: the request's caller still waits, so that its bytes may be touched until release_bytes().
  static bool claim_bytes(DiskRequest& request) {
    request.is_copying = !request.is_reported;
    return request.is_copying;
  }
  static void release_bytes(DiskRequest& request) { request.is_copying = false; }
  // Ends a request that is in flight; reports the fault unless expire() reported it.
  void end(DiskRequest& request, kv::StoreFault fault);
  // Reports requests that were cancelled or have taken too long, and lookups that have.
  void expire(std::int64_t now_ns);
  // Ends every lookup with what find(keys) returns.
  template <class Find>
  void answer_lookups(Find&& find) {
    for (const Lookup& lookup : lookups_) {
      report_(lookup.ticket, kv::StoreFault::kNone, find(lookup.keys));
    }
    lookups_.clear();
  }

  bool has_lookups() const { return !lookups_.empty(); }
  // True: a write of this page has not ended.
  bool is_writing(const kv::PageKey& key) const { return keys_written_.contains(key); }
  std::size_t size() const { return reads_.size() + writes_.size() + in_flight_.size(); }
  std::size_t in_flight() const { return in_flight_.size(); }
  std::size_t writes_in_flight() const { return writes_in_flight_; }
  // The number of the last request, and whether all writes up to a number have ended.
  std::uint64_t last_number() const { return requests_made_; }
  bool are_writes_ended(std::uint64_t number) const {
    return writes_open_.empty() || *writes_open_.begin() > number;
  }
  // Returns when expire() has a request in flight to report; the end of time: never.
  std::int64_t next_timeout_ns() const;

  // Stops the program when an invariant does not hold. Linear.
  void check() const;

 private:
  struct Lookup {
    kv::StoreTicket ticket = 0;
    std::vector<kv::PageKey> keys;
    std::int64_t asked_ns = 0;
  };
  using Requests = std::deque<std::unique_ptr<DiskRequest>>;

  Requests* next_queue();
  void expire(Requests& queue, std::int64_t now_ns);
  void forget_write(const DiskRequest& request);
  bool is_late(const DiskRequest& request, std::int64_t now_ns) const {
    return now_ns - request.asked_ns > limits_.request_limit_ns;
  }

  const DiskQueueLimits limits_;
  Report report_;
  bool are_writes_held_ = false;
  bool has_cancelled_ = false;
  std::uint64_t requests_made_ = 0;
  std::uint64_t takes_ = 0;
  Requests reads_;
  Requests writes_;
  std::set<DiskRequest*> in_flight_;
  std::size_t writes_in_flight_ = 0;
  std::set<std::uint64_t> writes_open_;      // numbers of the writes that have not ended
  std::multiset<kv::PageKey> keys_written_;  // keys of those writes
  std::vector<Lookup> lookups_;
};

}  // namespace pagoda::store
