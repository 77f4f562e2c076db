// Slab is the disk store without its threads: pages in slots, by key, through any crash. Every
// operation is either quick (the index, under a lock) or an I/O of the caller's own thread without
// the lock, so that one thread can drive it step by step, as tests do, or many at once, as
// DiskStore does.
//
// A page is readable once end_write() placed it, and durable once a later commit() returned 0. Then
// lookups find it after any crash, until it is evicted or removed, or its medium damages it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/result.h"
#include "kv/tiers/page_store.h"
#include "store/disk/aligned_bytes.h"
#include "store/disk/slab_files.h"
#include "store/disk/slot_codec.h"
#include "store/disk/slot_index.h"

namespace pagoda::store {

// Microseconds since 1970.
using WallClock = std::function<std::uint64_t()>;
std::uint64_t wall_clock_us();

class Slab {
 public:
  Slab(SlabFiles files, SlotCodec codec, WallClock clock);

  const SlotCodec& codec() const { return codec_; }
  const SlabFiles& files() const { return files_; }

  // Reads the index, once; until load() returned 0 no page is found and none can be written.
  int load(const std::function<void()>& on_progress);
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }

  std::size_t find(std::span<const kv::PageKey> keys) const;
  bool keeps(const kv::PageKey& key);

  // Reading is a slot held for a read: the codec then opens its bytes with `sum`.
  struct Reading {
    SlotNumber slot = 0;
    std::uint64_t sum = 0;
  };
  std::optional<Reading> begin_read(const kv::PageKey& key);
  // Ends a read with its fault. A slot whose bytes are damaged is freed. Returns the fault to
  // report: a page that was removed meanwhile is absent.
  kv::StoreFault end_read(const Reading& reading, kv::StoreFault fault);

  // Writing is a slot to be filled: the codec seals it at `written_us`.
  struct Writing {
    SlotNumber slot = 0;
    std::uint64_t written_us = 0;
    std::uint64_t epoch = 0;  // syncs that had failed when the write began
  };
  std::optional<Writing> begin_write();
  // `sum` nothing: the write failed, with `error`. False: the page was not placed.
  bool end_write(const Writing& writing, const kv::PageLabel& label,
                 std::optional<std::uint64_t> sum, int error);
  // After the disk was full, only pages in the store make way, until this is called.
  void allow_growth();

  // One thread at a time calls these three. Makes the pages placed so far durable. After an error
  // some of them may be gone, none is wrong.
  int commit();
  // Removes an owner's pages, or all, in three steps. After a crash slots may hold pages that the
  // index lost sight of: verify() checks the slots that nobody has read since. take_out() makes the
  // pages unreadable, and must not run while a page of the owner is being written. blank()
  // overwrites them, and every free slot that holds bytes; what fails is said by the removal.
  bool verify();
  SlotIndex::TakenOut take_out(const std::optional<kv::OwnerTag>& owner);
  Result<kv::Removal> blank(const SlotIndex::TakenOut& out, bool are_all_verified);
  Result<kv::Removal> remove(const std::optional<kv::OwnerTag>& owner);
  // Checks the next used slot from `slot` on and frees it when it is damaged; sets `slot` to the
  // number after it. Nothing: there was none.
  std::optional<kv::StoreFault> scrub(SlotNumber& slot);

  // Commits, with the order of use, and marks that every slot holds what its record says, if that
  // is known.
  int close();

  bool has_changes() const;
  // Each failed sync dropped the pages placed since the sync before it.
  std::uint64_t syncs_failed() const;
  struct Counts {
    std::uint64_t pages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t evicted = 0;
    std::uint64_t evicted_unread = 0;
  };
  Counts counts() const;
  void check() const;

 private:
  std::uint64_t now_us();
  void find_blank_slots(SlotIndex& index) const;
  bool write_zeros(SlotNumber slot);
  int blank(std::span<const SlotNumber> slots, bool& is_overwritten);
  void make_holes(std::span<const SlotNumber> slots);

  SlabFiles files_;
  const SlotCodec codec_;
  const WallClock clock_;
  std::atomic<bool> is_ready_ = false;

  mutable std::mutex mutex_;  // guards the members below
  std::unique_ptr<SlotIndex> index_;
  std::uint64_t last_us_ = 0;
  std::uint64_t epoch_ = 0;
  bool may_grow_ = true;

  AlignedBytes scratch_;  // used by commit(), remove() and scrub()
};

}  // namespace pagoda::store
