// DiskStore is the disk tier: it keeps pages in slots of a slab file (format.h), through any crash
// (slab.h), by threads of its own. A few workers read and write, each many slots at once where the
// kernel has io_uring; a maintenance thread reads the index at start, makes writes durable within a
// second, and looks for damage while nothing runs.
//
// A write is durable when flush() returned without error after its report, and by itself
// commit_after_ns after its report plus the time that a sync takes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kv/tiers/page_store.h"
#include "store/disk/disk_health.h"
#include "store/disk/disk_options.h"
#include "store/disk/disk_queue.h"
#include "store/disk/file_layer.h"
#include "store/disk/slab.h"
#include "store/disk/throttle.h"

namespace pagoda::store {

class DiskStore final : public kv::PageStore {
 public:
  // Errors: no room for a page within the limit, a folder or files that cannot be used, another
  // process that holds the folder, a key file that is not one. Returns before the index is read. A
  // read-only file system makes a read-only store.
  static Result<std::unique_ptr<DiskStore>> open(const DiskOptions& options);
  // Opens a store over files of the caller's making.
  static Result<std::unique_ptr<DiskStore>> open(const DiskOptions& options,
                                                 std::unique_ptr<FileLayer> layer);
  ~DiskStore() override;

  std::string_view name() const override { return "disk"; }
  std::optional<std::size_t> find(kv::StoreTicket ticket,
                                  std::span<const kv::PageKey> keys) override;
  bool keeps(const kv::PageKey& key) override;
  void read(kv::PageRead read) override;
  bool write(kv::PageWrite write) override;
  bool takes_writes() const override;
  void cancel(std::span<const kv::StoreTicket> tickets) override;
  void poll(std::vector<kv::StoreReport>& reports) override;
  void on_report(std::function<void()> notify) override;
  Result<kv::Removal> remove(const kv::OwnerTag& owner) override;
  Result<kv::Removal> remove_all() override;
  Status flush(std::int64_t timeout_ns) override;
  kv::StoreStats stats() const override;

  // Tells that nothing runs, so that the scrub may. Any thread.
  void set_idle(bool is_idle);
  // Names the way of I/O for people: "io_uring, direct".
  std::string io_name() const;

 private:
  friend class DiskIoWorker;

  using Lock = std::unique_lock<std::mutex>;

  DiskStore(const DiskOptions& options, std::unique_ptr<FileLayer> layer,
            std::unique_ptr<Slab> slab);
  void start();

  // For workers. Returns the next request; nothing when there is none and the worker may not wait,
  // and at the end.
  std::unique_ptr<DiskRequest> take(bool may_wait);
  // True: the caller's bytes may be touched, and stay valid until release_bytes().
  bool claim_bytes(DiskRequest& request);
  void release_bytes(DiskRequest& request);
  // Ends a request that take() gave. `error` is the system's, for people.
  void finish(DiskRequest& request, kv::StoreFault fault, int error);
  bool is_on(bool is_write) const;

  // For the maintenance thread.
  void maintain();
  bool load_index();
  void commit_if_due(std::int64_t now_ns);
  void scrub_if_due(std::int64_t now_ns);
  std::int64_t next_wake_ns() const;

  int commit();
  std::optional<SlotIndex::TakenOut> take_out(const std::optional<kv::OwnerTag>& owner);
  Result<kv::Removal> remove_pages(const std::optional<kv::OwnerTag>& owner);
  // The caller holds mutex_.
  void push(kv::StoreTicket ticket, kv::StoreFault fault, std::size_t keys_found);
  void note_changes();
  // Releases mutex_, and notifies the thread that waits for reports.
  void unlock_and_notify(Lock& lock);

  const DiskOptions options_;
  const SteadyClock clock_;
  std::unique_ptr<FileLayer> layer_;  // before slab_: its lock outlives the slab's files
  std::unique_ptr<Slab> slab_;
  Throttle throttle_;
  std::function<void()> notify_;
  bool has_uring_ = false;

  std::mutex other_slabs_;  // held by a removal that walks the slabs of other models
  std::timed_mutex slow_;   // commit, removal and scrub, one at a time; taken before mutex_

  mutable std::mutex mutex_;                 // guards the members below
  std::condition_variable work_;             // wakes workers
  std::condition_variable maintenance_due_;  // wakes the maintenance thread
  std::condition_variable ended_;            // wakes flush() and remove()
  bool is_stopping_ = false;
  std::atomic<bool> is_idle_ = false;  // not guarded
  bool needs_notify_ = false;
  bool is_maintenance_idle_ = false;  // it waits without a deadline
  DiskQueue queue_;
  DiskHealth health_;
  std::vector<kv::StoreReport> reports_;
  std::uint64_t syncs_failed_ = 0;     // failed syncs that flush() knows of
  std::int64_t changed_since_ns_ = 0;  // 0: nothing waits for a commit
  std::int64_t scrub_due_ns_ = 0;
  SlotNumber scrub_next_ = 0;
  kv::StoreStats counted_;

  std::vector<std::thread> io_workers_;
  std::thread maintenance_;
};

}  // namespace pagoda::store
