// SimStore is a tier of the simulation: it keeps pages by key within a number of bytes, reports
// late and out of order, loses, damages and refuses, all by seed. Bytes are copied when an
// operation ends, so that a page which is released too early shows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kv/tiers/page_store.h"
#include "sim/sim_setup.h"

namespace pagoda::sim {

// StoreSabotage is a broken promise; tests see that it shows.
enum class StoreSabotage : std::uint8_t {
  kNone,
  kForeignPage,  // gives another page than the one asked for
  kTornPage,     // reports a page before all of it has come
};

class SimStore final : public kv::PageStore {
 public:
  SimStore(const SimStoreOptions& options, std::uint64_t seed, const Clock& clock);

  std::string_view name() const override { return "sim"; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override;
  bool keeps(const kv::PageKey& key) override { return pages_.contains(key); }
  void read(kv::PageRead read) override;
  bool write(kv::PageWrite write) override;
  bool takes_writes() const override { return true; }
  void cancel(std::span<const kv::StoreTicket> tickets) override;
  void poll(std::vector<kv::StoreReport>& reports) override;
  void on_report(std::function<void()> /*notify*/) override {}
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override;
  Result<kv::Removal> remove_all() override;
  Status flush(std::int64_t /*timeout_ns*/) override { return ok_status(); }
  kv::StoreStats stats() const override;

  // Ends every running operation at once, for the end of the simulation.
  void hurry();

  void sabotage(StoreSabotage kind) { sabotage_ = kind; }
  bool sabotaged() const { return sabotaged_; }
  std::uint64_t pages_read() const { return pages_read_; }
  std::uint64_t pages_written() const { return pages_written_; }
  std::uint64_t faults() const { return faults_; }
  bool has_pages_of(const kv::OwnerTag& owner) const;

 private:
  struct Page {
    kv::PageLabel label;
    std::vector<std::byte> bytes;
  };
  struct Operation {
    std::int64_t due_ns;
    kv::StoreTicket ticket;
    std::function<kv::StoreReport()> end;
    bool is_read;
  };

  void later(kv::StoreTicket ticket, bool is_read, std::function<kv::StoreReport()> end);
  bool fails() { return options_.one_fails_in > 0 && dice_.one_in(options_.one_fails_in); }
  kv::StoreReport give(const kv::PageRead& read);
  kv::StoreReport keep(const kv::PageWrite& write);
  std::size_t count_found(std::span<const kv::PageKey> keys) const;

  SimStoreOptions options_;
  Dice dice_;
  const Clock& clock_;
  std::map<kv::PageKey, Page> pages_;
  std::vector<Operation> running_;
  StoreSabotage sabotage_ = StoreSabotage::kNone;
  bool sabotaged_ = false;
  std::uint64_t pages_read_ = 0;
  std::uint64_t pages_written_ = 0;
  std::uint64_t faults_ = 0;
};

}  // namespace pagoda::sim
