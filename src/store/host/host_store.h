// HostStore is a tier in main memory: pages beside the pool, copied by a thread of its own, several
// at a time.
//
// It serves devices whose own memory is the pool, and pools that are small on purpose. The least
// recently used page makes room; a page that is being copied stays.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <variant>
#include <vector>

#include "kv/tiers/page_copier.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

struct HostStoreOptions {
  std::uint64_t bytes_max = 0;
  std::uint64_t page_bytes = 0;
  std::uint32_t writes_queued_max = 64;
};

// Returns how many threads a copier of this process's memory should give to a host tier: more than
// a few copy no faster.
std::size_t host_copy_threads();

class HostStore final : public kv::PageStore {
 public:
  // Takes its memory at once, from the copier: an error when the copier has none. Untouched memory
  // of the host costs nothing.
  static Result<std::unique_ptr<HostStore>> open(const HostStoreOptions& options,
                                                 std::unique_ptr<kv::PageCopier> copier);
  ~HostStore() override;

  std::string_view name() const override { return "host"; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override;
  bool keeps(const kv::PageKey& key) override;
  void read(kv::PageRead read) override;
  bool write(kv::PageWrite write) override;
  bool takes_writes() const override { return !slots_.empty(); }
  void cancel(std::span<const kv::StoreTicket> tickets) override;
  void poll(std::vector<kv::StoreReport>& reports) override;
  void on_report(std::function<void()> notify) override;
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override;
  Result<kv::Removal> remove_all() override;
  Status flush(std::int64_t timeout_ns) override;
  kv::StoreStats stats() const override;

 private:
  struct Slot {
    kv::PageLabel label;
    std::uint32_t copies_running = 0;  // copies that read the slot, or the one that writes it
    bool is_written = false;           // false: it is being written
    bool was_read = false;
    bool is_removed = false;  // the page goes when its last copy has ended
  };
  using LruList = std::list<std::uint32_t>;  // slots, least recently used first
  struct Copy {
    kv::StoreTicket ticket;
    std::uint32_t slot;
    std::variant<std::span<std::byte>, std::span<const std::byte>> page;  // a read's, or a write's
  };

  HostStore(const HostStoreOptions& options, std::unique_ptr<kv::PageCopier> copier,
            kv::HostMemory memory);
  std::byte* slot_bytes(std::uint32_t slot) { return bytes_.get() + slot * options_.page_bytes; }
  kv::PageCopy move_of(const Copy& copy);
  // The caller holds mutex_.
  std::optional<std::uint32_t> room();
  void touch(std::uint32_t slot);
  void forget(std::uint32_t slot);
  void free_slot(std::uint32_t slot);
  void end(const Copy& copy, kv::StoreFault fault);
  void report(kv::StoreTicket ticket, kv::StoreFault fault);
  template <class Chosen>
  kv::Removal remove_where(Chosen&& chosen);

  void run();

  HostStoreOptions options_;
  std::unique_ptr<kv::PageCopier> copier_;
  kv::HostMemory bytes_;  // [slot, page_bytes]
  std::function<void()> notify_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> unused_;
  std::map<kv::PageKey, std::uint32_t> slot_of_;  // written slots
  LruList lru_;                                   // written slots
  std::vector<LruList::iterator> lru_positions_;  // [slot]
  std::deque<Copy> queue_;
  std::vector<kv::StoreReport> reports_;
  kv::StoreStats stats_;
  std::uint32_t copying_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // the last member: starts when all others exist
};

}  // namespace pagoda::store
