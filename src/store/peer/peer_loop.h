// PeerLoop is the thread of a PeerStore: it moves links to other servers, and what is asked of
// them.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/lru_map.h"
#include "store/page_cipher.h"
#include "store/peer/peer_link.h"
#include "store/peer/peer_mailbox.h"
#include "store/peer/peer_store.h"

namespace pagoda::store {

class PeerLoop {
 public:
  static Result<std::unique_ptr<PeerLoop>> start(PeerStoreOptions options);
  ~PeerLoop();

  // Any thread
  const PeerStoreOptions& options() const { return options_; }
  PeerMailbox& mailbox() { return mailbox_; }
  std::int64_t now_ns() const { return clock_.now_ns(); }

 private:
  using LinkId = std::uint64_t;

  // Links are asked one after another, each for the keys behind those that were found.
  struct OpenLookup {
    PeerLookup asked;
    std::vector<LinkId> links;
    std::size_t next_link = 0;
    bool is_sent = false;  // the link owes an answer
    std::size_t keys_sent = 0;
    std::size_t keys_found = 0;
    std::int64_t deadline_ns = 0;
  };
  struct OpenRead {
    PeerRead asked;
    LinkId link = 0;
  };

  PeerLoop(PeerStoreOptions options, std::optional<net::TlsClient> tls);

  void run();
  void take_inbox();
  void begin(PeerLookup lookup);
  LinkId named_link(const PeerAddress& address);
  bool forget_unused_link();
  bool is_asked(LinkId id) const;
  void advance(std::uint64_t number);
  void forget_find(std::uint64_t number, const OpenLookup& open);
  void end(std::uint64_t number, kv::StoreFault fault);
  void launch_reads();
  void cancel(const std::vector<kv::StoreTicket>& tickets);
  void move_links();
  Status take(LinkId id, const PeerFrame& frame);
  Status take_found(LinkId id, const FoundFrame& found);
  void take_page(LinkId id, const PageFrame& page);
  void tell_off(const PeerLink& link);
  void note_off(LinkId id);
  void note_timeout(LinkId id);
  void expire();
  void forget_idle_links();
  void show();
  void wait();
  void note_once(const std::string& kind, const std::string& text);
  PeerLink* link_of(LinkId id);

  PeerStoreOptions options_;
  const std::optional<net::TlsClient> tls_;
  const PageCipher cipher_;
  SteadyClock clock_;
  PeerMailbox mailbox_;
  PeerLinkTerms terms_;
  std::map<LinkId, std::unique_ptr<PeerLink>> links_;  // its own first, in their order
  LinkId next_link_ = 1;
  std::map<std::uint64_t, OpenLookup> lookups_;  // by the number in its frame
  std::map<std::uint64_t, OpenRead> reads_;
  std::uint64_t next_number_ = 1;
  std::deque<PeerRead> queue_;           // reads that were not sent
  LruMap<kv::PageKey, LinkId> who_has_;  // pages that were found
  std::set<std::string> noted_;
  std::vector<std::string> shown_;
  std::vector<pollfd> sources_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace pagoda::store
