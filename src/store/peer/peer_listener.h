// PeerListener serves pages of the pool to other servers, which ask for them by block hash.
//
//   find   the pages that are there are leased: pinned, so that they stay until they were read, or
//          until the lease is over
//   read   a leased page is copied, encrypted and sent, and its lease ends; one that is not leased
//          is looked for first
//
// Prompts that were handed over are leased before anybody asks. Who is asked to wait for pages that
// are being computed answers when they are handed over. One thread does all that takes time; the
// cache's thread only pins. A client that has not proven to have the key gets no answer; everything
// is bounded: connections, requests, bytes that wait to be sent, time.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kv/tiers/page_copier.h"
#include "kv/tiers/page_lease.h"
#include "store/key_file.h"
#include "store/page_cipher.h"
#include "store/peer/lease_book.h"
#include "store/peer/peer_address.h"
#include "store/peer/peer_connection.h"

namespace pagoda::store {

struct PeerListenerOptions {
  PeerAddress address = {};  // port 0: any that is free
  SecretKey key = {};
  // A certificate and its key, as PEM files; empty: plain TCP.
  std::string tls_certificate = {};
  std::string tls_key = {};
  std::uint64_t page_bytes = 0;
  std::int64_t lease_ns = 30'000'000'000;
  std::int64_t wait_ns_max = 120'000'000'000;  // for pages that are being computed
  std::int64_t handshake_ns = 5'000'000'000;
  std::int64_t stall_ns = 10'000'000'000;  // a client that takes nothing for so long is let go
  // So many clients may have proven to have the key, and as many more be about to. Where these are
  // too many the oldest is let go, so that strangers who stay keep nobody out.
  std::size_t connections_max = 64;
  std::size_t find_keys_max = 1u << 20;   // of all finds that are not answered yet
  std::size_t out_bytes_max = 16u << 20;  // of a connection; one page always fits
  // Where pages are not in this process's memory.
  std::unique_ptr<kv::PageCopier> copier = {};
  // Tells the operator the first of each kind of trouble. Called by the listener's thread.
  std::function<void(const std::string&)> note = {};
};

// Counts since the start; any thread reads them.
struct PeerServed {
  std::uint64_t connections = 0;   // now
  std::uint64_t refused = 0;       // connections: not proven, too many, or nonsense
  std::uint64_t pages_leased = 0;  // now
  std::uint64_t leases_expired = 0;
  std::uint64_t pages_sent = 0;
  std::uint64_t bytes_sent = 0;
};

class PeerListener final : public kv::PageLessee {
 public:
  // Binds the port; nobody is served before start(). An error names the address or the file.
  static Result<std::unique_ptr<PeerListener>> open(PeerListenerOptions options);
  ~PeerListener() override;

  // The lessor must outlive stop().
  void start(kv::PageLessor& lessor, const DeploymentId& deployment);
  void stop();

  std::uint16_t port() const { return port_; }
  bool has_tls() const { return !options_.tls_certificate.empty(); }
  // Reads the files of the certificate again, for clients to come. An error: the old one stays.
  Status reload_certificate();
  PeerServed served() const;

  // kv::PageLessee
  void take(std::vector<kv::LeasedPage> pages, std::vector<kv::BlockHash> prompt) override;
  void revoke(std::optional<kv::OwnerTag> owner) override;

 private:
  // OpenFind is a find that is not answered yet.
  struct OpenFind {
    LeaseBook::Holder client = 0;
    FindFrame asked;
    std::size_t keys_held = 0;
    std::int64_t wait_until_ns = 0;
    bool is_waiting = false;  // for pages that are being computed; else the lessor was asked
  };
  using Finds = std::map<std::uint64_t, OpenFind>;
  // Other threads leave it for the listener's.
  struct Mail;

  PeerListener(PeerListenerOptions options, int socket, std::uint16_t port);

  void run();
  void take_mail();
  void accept_clients();
  void let_oldest_stranger_go();
  void move(PeerConnection& client);
  bool welcomes(PeerConnection& client);
  void take_requests(PeerConnection& client, std::vector<PeerRequest> requests);
  void begin_find(PeerConnection& client, FindFrame asked);
  void withdraw(PeerConnection& client, std::uint64_t number_of_client);
  Finds::iterator forget(Finds::iterator find);
  void settle(std::uint64_t number);
  void answer(std::uint64_t number);
  void take_found(std::uint64_t number, std::vector<kv::LeasedPage> pages);
  void wake_waiting(const std::vector<kv::BlockHash>& prompt);
  void send_pages(PeerConnection& client);
  bool send_page(PeerConnection& client, const ReadFrame& asked);
  void take_page(LeaseBook::Holder number, const kv::PageKey& key,
                 std::vector<kv::LeasedPage> pages);
  void hold(LeaseBook::Holder holder, std::vector<kv::LeasedPage> pages);
  void ask(std::vector<kv::PageKey> keys,
           std::function<void(Mail&, std::vector<kv::LeasedPage>)> leave);
  void end_what_is_over();
  void refuse(PeerConnection& client, const std::string& why);
  void note_once(const std::string& kind, const std::string& text);
  void give_back();
  void show();
  void wait();
  PeerConnection* client_of(LeaseBook::Holder number);
  std::size_t proven_clients() const;

  PeerListenerOptions options_;
  const int socket_;
  const std::uint16_t port_;
  PageCipher cipher_;
  kv::HostMemory staging_ = {};  // a page, where there is a copier
  SteadyClock clock_;
  kv::PageLessor* lessor_ = nullptr;
  DeploymentId deployment_ = {};
  const std::shared_ptr<Mail> mail_;

  // The listener's thread owns these.
  std::unique_ptr<const net::TlsServer> tls_;
  LeaseBook book_;
  LeaseBook::Ended ended_;
  std::map<LeaseBook::Holder, std::unique_ptr<PeerConnection>> clients_;
  LeaseBook::Holder next_client_ = 1;
  Finds finds_;
  std::size_t find_keys_ = 0;  // of all of them
  std::uint64_t next_find_ = 1;
  std::vector<std::uint64_t> woken_;  // finds whose pages were handed over just now
  std::int64_t accept_again_ns_ = 0;  // no descriptor was left
  std::set<std::string> noted_;
  std::vector<pollfd> sources_;
  bool has_more_ = false;

  std::atomic<std::uint64_t> connections_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> pages_leased_{0};
  std::atomic<std::uint64_t> leases_expired_{0};
  std::atomic<std::uint64_t> pages_sent_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::thread thread_;
};

}  // namespace pagoda::store
