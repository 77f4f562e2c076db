// PeerStore finds and fetches pages in the pools of other servers (PeerListener), by block hash.
//
// It asks its own peers about every prompt, in their order, and before them the server that a
// request names, where the allow list has it. Nothing is written there. A peer that is away costs
// nothing; one that is slow or does not answer costs its time limit, and is left alone for a while
// after some of those. A page is taken only if its record is whole, sealed with our key and has the
// label that was asked for. One thread does all that takes time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/tiers/page_store.h"
#include "store/key_file.h"
#include "store/peer/peer_address.h"
#include "store/peer/peer_frames.h"

namespace pagoda::store {

class PeerLoop;

struct PeerStoreOptions {
  std::vector<PeerAddress> peers;
  PeerAllowList allowed;  // hosts that requests may name
  SecretKey key = {};
  bool has_tls = false;
  std::string tls_ca_file = {};  // who signed the peers' certificates; empty: the system's
  std::uint64_t page_bytes = 0;
  std::int64_t timeout_ns = 2'000'000'000;  // of a question and of a page
  std::int64_t connect_timeout_ns = 1'000'000'000;
  std::int64_t retry_first_ns = 100'000'000;
  std::int64_t retry_last_ns = 10'000'000'000;
  // How long a request waits for the server that it names, and for what that still computes.
  std::int64_t wait_ns = 60'000'000'000;
  std::uint32_t timeouts_max = 3;  // one after another, until a connection is given up
  std::size_t named_max = 16;      // servers that requests named, connected at a time
  std::int64_t named_idle_ns = 60'000'000'000;
  std::size_t reads_queued_max = 4096;
  std::size_t keys_known_max = 65'536;
  // Tells the operator the first of each kind of trouble. Called by the store's thread.
  std::function<void(const std::string&)> note = {};
};

class PeerStore final : public kv::PageStore {
 public:
  // An error names a file that cannot be used.
  static Result<std::unique_ptr<PeerStore>> open(PeerStoreOptions options);
  // Waits for the thread; requests that are not reported yet never will be.
  ~PeerStore() override;

  // May a request name this host? Any thread.
  bool allows(const std::string& host) const;
  // Stands for the server's secret, for connections that are made from now on. Any thread.
  void set_deployment(const DeploymentId& deployment);
  // Lines for people: each of its own peers, and what is wrong with it.
  std::vector<std::string> peers_shown() const;

  std::string_view name() const override { return "peer"; }
  bool asks_network() const override { return true; }
  std::int64_t expect(std::span<const kv::BlockHash> hashes, const kv::PageOrigin& origin) override;
  // Finds nothing where no peer is on and none is named.
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override;
  // Other servers keep what they compute: nothing needs to be written.
  bool keeps(const kv::PageKey& /*key*/) override { return true; }
  bool write(kv::PageWrite /*write*/) override { return false; }
  bool takes_writes() const override { return false; }
  void read(kv::PageRead read) override;
  void cancel(std::span<const kv::StoreTicket> tickets) override;
  void poll(std::vector<kv::StoreReport>& reports) override;
  void on_report(std::function<void()> notify) override;
  // Nothing of ours is there: those pages are their servers' to remove.
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override;
  Result<kv::Removal> remove_all() override { return kv::Removal{}; }
  Status flush(std::int64_t /*timeout_ns*/) override { return ok_status(); }
  kv::StoreStats stats() const override;

 private:
  explicit PeerStore(std::unique_ptr<PeerLoop> loop);

  std::unique_ptr<PeerLoop> loop_;
};

}  // namespace pagoda::store
