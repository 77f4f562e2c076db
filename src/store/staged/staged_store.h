// StagedStore serves a pool whose pages only a copier reaches: each page goes through a staging
// slot in host memory.
//
// A page that is read arrives in a slot and is copied into the pool; a page that is written is
// copied out first and then given to the store behind. Copies run on a thread of their own. Slots
// are few: reads wait for one, writes are refused, and writes never hold more than half of them.
//
// Thread rule: that of kv::PageStore.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "kv/tiers/page_copier.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

struct StagedStoreOptions {
  std::uint64_t page_bytes = 0;
  std::uint32_t slots = 32;
};

class StagedStore final : public kv::PageStore {
 public:
  // An error when the copier has no memory.
  static Result<std::unique_ptr<StagedStore>> open(std::unique_ptr<kv::PageStore> behind,
                                                   std::unique_ptr<kv::PageCopier> copier,
                                                   const StagedStoreOptions& options);
  ~StagedStore() override;

  std::string_view name() const override { return behind_->name(); }
  bool is_shared() const override { return behind_->is_shared(); }
  bool asks_network() const override { return behind_->asks_network(); }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override {
    return behind_->find(ticket, keys);
  }
  std::int64_t expect(std::span<const kv::BlockHash> hashes,
                      const kv::PageOrigin& origin) override {
    return behind_->expect(hashes, origin);
  }
  bool keeps(const kv::PageKey& key) override { return behind_->keeps(key); }
  void read(kv::PageRead read) override;
  bool write(kv::PageWrite write) override;
  bool takes_writes() const override { return behind_->takes_writes(); }
  void cancel(std::span<const kv::StoreTicket> tickets) override;
  void poll(std::vector<kv::StoreReport>& reports) override;
  void on_report(std::function<void()> notify) override;
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override { return behind_->remove(owner); }
  Result<kv::Removal> remove_all() override { return behind_->remove_all(); }
  Status flush(std::int64_t timeout_ns) override { return behind_->flush(timeout_ns); }
  kv::StoreStats stats() const override;

 private:
  // StagedPage is a page on its way, in its slot.
  struct StagedPage {
    std::uint32_t slot = 0;
    std::span<std::byte> page;  // destination of a read
    kv::PageLabel label;        // label of a write
    bool is_write = false;
  };
  struct Job {
    kv::StoreTicket ticket = 0;
    kv::PageCopy move;
  };
  struct Moved {
    kv::StoreTicket ticket = 0;
    bool ok = false;
    std::int64_t ended_ns = 0;
  };

  StagedStore(std::unique_ptr<kv::PageStore> behind, std::unique_ptr<kv::PageCopier> copier,
              kv::HostMemory memory, const StagedStoreOptions& options);
  std::span<std::byte> slot_bytes(std::uint32_t slot) {
    return {memory_.get() + slot * options_.page_bytes, options_.page_bytes};
  }
  void begin(kv::PageRead read);
  // A page came from the store behind, or the store behind has taken it.
  void on_store_report(const kv::StoreReport& report, std::vector<kv::StoreReport>& reports);
  // A page was copied: into the pool, or out of it.
  void on_copied(const Moved& moved, std::vector<kv::StoreReport>& reports);
  // Gives a page that is in its slot to the store behind. A page that the store refuses stays in
  // its slot until the store takes it.
  void hand_on(kv::StoreTicket ticket, std::vector<kv::StoreReport>& reports);
  void end(const kv::StoreReport& report, std::vector<kv::StoreReport>& reports);
  void queue_move(kv::StoreTicket ticket, const kv::PageCopy& move);
  void run();

  std::unique_ptr<kv::PageStore> behind_;
  std::unique_ptr<kv::PageCopier> copier_;
  kv::HostMemory memory_;  // [slot, page_bytes]
  StagedStoreOptions options_;
  SteadyClock clock_;

  // The cache's thread owns these.
  std::vector<std::uint32_t> slots_free_;
  std::unordered_map<kv::StoreTicket, StagedPage> staged_pages_;
  std::uint32_t writes_under_way_ = 0;
  std::deque<kv::PageRead> reads_waiting_;
  std::vector<kv::StoreTicket>
      refused_;                         // writes in their slots that the store behind did not take
  std::vector<kv::StoreReport> ended_;  // reported by the next poll()
  std::vector<kv::StoreReport> behind_reports_;
  std::vector<Moved> landed_;

  std::atomic<std::uint64_t> moving_{0};  // slots in use that the store behind has not got
  std::atomic<std::uint64_t> faults_{0};  // failed copies

  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> notify_;  // under mutex_
  std::deque<Job> jobs_;          // under mutex_
  std::vector<Moved> moved_;      // under mutex_
  bool stopping_ = false;         // under mutex_
  std::thread thread_;            // the last member: starts when all others exist
};

}  // namespace pagoda::store
