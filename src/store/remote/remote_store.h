// RemoteStore keeps pages in a Redis or a Memcached that several servers share.
//
// The store is on while it is connected: a server that is away, refuses us or does not reply any
// more costs nothing, and is tried again now and then in the background. While the store is on,
// every request ends within its time limit. One thread does all that takes time: name lookups,
// encryption, checksums, copies, bytes on the wire.
#pragma once

#include <memory>
#include <string>

#include "kv/tiers/page_store.h"
#include "store/remote/remote_options.h"

namespace pagoda::store {

class RemoteLoop;

class RemoteStore final : public kv::PageStore {
 public:
  // Begins to connect and does not wait for the connection. An error names a file that cannot be
  // used, or what this build lacks.
  static Result<std::unique_ptr<RemoteStore>> open(const RemoteOptions& options);
  // Waits for the thread; requests that are not reported yet never will be.
  ~RemoteStore() override;

  // Waits until the store is on; the error says what is wrong.
  Status await_connection(std::int64_t timeout_ns);

  std::string_view name() const override;
  bool is_shared() const override { return true; }
  // Finds nothing while the store is off; else the server is always asked.
  bool asks_network() const override { return true; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override;
  // Looks into the known keys, bounded in size and age.
  bool keeps(const kv::PageKey& key) override;
  // Reports kNoRoom when too many requests wait.
  void read(kv::PageRead read) override;
  bool write(kv::PageWrite write) override;
  bool takes_writes() const override;
  void cancel(std::span<const kv::StoreTicket> tickets) override;
  void poll(std::vector<kv::StoreReport>& reports) override;
  void on_report(std::function<void()> notify) override;

  // Redis: counted pages, their keys are gone. Memcached: Removal::note says what was done.
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override;
  Result<kv::Removal> remove_all() override;
  // A write is durable once the server acknowledged it. Failed writes were reported as such.
  Status flush(std::int64_t timeout_ns) override;
  kv::StoreStats stats() const override;

 private:
  explicit RemoteStore(std::unique_ptr<RemoteLoop> loop);

  std::unique_ptr<RemoteLoop> loop_;
};

}  // namespace pagoda::store
