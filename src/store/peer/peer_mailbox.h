// PeerMailbox is what callers of a PeerStore and its thread leave for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/event_fd.h"
#include "base/lru_map.h"
#include "kv/tiers/page_store.h"
#include "store/peer/peer_address.h"
#include "store/peer/peer_frames.h"

namespace pagoda::store {

// A server that a request named for its prompt.
struct NamedOrigin {
  PeerAddress address;
  std::int64_t wait_until_ns = 0;   // for pages that it still computes; 0: it is not asked to wait
  std::int64_t known_until_ns = 0;  // nobody is asked there afterwards
};

struct PeerLookup {
  kv::StoreTicket ticket = 0;
  std::vector<kv::PageKey> keys = {};
  std::int64_t begun_ns = 0;
  std::optional<NamedOrigin> origin = {};
};

struct PeerRead {
  kv::StoreTicket ticket = 0;
  kv::PageLabel label = {};
  std::span<std::byte> into = {};  // touched until the read is reported, never after
  std::int64_t deadline_ns = 0;
};

class PeerMailbox {
 public:
  struct Inbox {
    std::vector<PeerLookup> lookups;
    std::vector<PeerRead> reads;
    std::vector<kv::StoreTicket> cancelled;
    DeploymentId deployment = {};
    bool is_stopping = false;
  };

  PeerMailbox(std::size_t reads_queued_max, std::size_t hashes_max);

  // Callers
  void expect(std::span<const kv::BlockHash> hashes, const NamedOrigin& origin);
  // False: there is nobody to be asked.
  bool put_lookup(PeerLookup lookup);
  // Reports kNoRoom where too many wait.
  void put_read(PeerRead read);
  void cancel(std::span<const kv::StoreTicket> tickets);
  void poll(std::vector<kv::StoreReport>& reports);
  void on_report(std::function<void()> notify);
  void set_deployment(const DeploymentId& deployment);
  kv::StoreStats stats() const;
  std::vector<std::string> peers_shown() const;
  void stop();

  // The store's thread
  Inbox take();
  void report_lookup(const PeerLookup& lookup, kv::StoreFault fault, std::size_t keys_found);
  void report_read(const PeerRead& read, kv::StoreFault fault);
  // Who was asked to wait for these pages has answered: it is not asked to wait again.
  void end_waiting(std::span<const kv::PageKey> keys);
  void show(std::vector<std::string> peers, std::size_t on, bool is_ready,
            const std::string& condition);
  // Notifies if there is a report since the last time.
  void notify_if_due();
  EventFd& wakeup() { return wakeup_; }

 private:
  std::optional<NamedOrigin> origin_of(const PeerLookup& lookup);  // under mutex_

  std::size_t reads_queued_max_;
  EventFd wakeup_;
  mutable std::mutex mutex_;
  Inbox inbox_;
  LruMap<kv::BlockHash, NamedOrigin> origins_;
  std::vector<kv::StoreReport> reports_;
  std::function<void()> notify_;
  bool is_notify_due_ = false;
  std::vector<std::string> peers_;
  bool has_peer_ = false;  // one of the peers is on
  kv::StoreStats stats_;
};

}  // namespace pagoda::store
