// The store without its threads: pages in slots, by key, through any crash. Every operation is
// either quick (the index, under a lock) or an I/O of the caller's own thread without the lock, so
// that one thread can drive it step by step, as tests do, or many at once, as DiskStore does.
//
// A page is readable once end_write() placed it, and durable once a later commit() said 0. Then it
// is found after any crash, until it makes way for another, is removed, or its medium damages it.
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

  // Reads the index, once; until it said 0 nothing is found and nothing can be written.
  int load(const std::function<void()>& on_progress);
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }

  std::size_t find(std::span<const kv::PageKey> keys) const;
  bool keeps(const kv::PageKey& key);

  // A slot held for reading: its bytes are then opened by the codec with `sum`.
  struct Reading {
    SlotNumber slot = 0;
    std::uint64_t sum = 0;
  };
  std::optional<Reading> begin_read(const kv::PageKey& key);
  // Ends it with what came of it. A slot whose bytes are no good is freed. Returns what to report:
  // a page that was removed meanwhile is absent.
  kv::StoreFault end_read(const Reading& reading, kv::StoreFault fault);

  // A slot to be filled: sealed by the codec at `written_us`.
  struct Writing {
    SlotNumber slot = 0;
    std::uint64_t written_us = 0;
    std::uint64_t epoch = 0;  // syncs that had failed when it began
  };
  std::optional<Writing> begin_write();
  // `sum` nothing: it failed, with `error`. False: the page is not there.
  bool end_write(const Writing& writing, const kv::PageLabel& label,
                 std::optional<std::uint64_t> sum, int error);
  // After the disk was full, only pages in the store make way; until this is called.
  void allow_growth();

  // These three from one thread at a time.
  // Makes durable what was placed before it. After an error some of it may be gone, none is wrong.
  int commit();
  // Removes an owner's pages, or all. After a crash slots may hold pages that the index lost sight
  // of: those not seen since are checked first, and every free slot with bytes is blanked too.
  Result<kv::Removal> remove(const std::optional<kv::OwnerTag>& owner);
  // Checks the next used slot from `slot` on and frees it when it is damaged; leaves the number
  // behind it. Nothing: there was none.
  std::optional<kv::StoreFault> scrub(SlotNumber& slot);

  // commit(), with the order of use, and a mark that every slot holds what its record says, if that
  // is known.
  int close();

  bool has_changes() const;
  // Each dropped what was placed since the sync before it.
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
  bool blank(SlotNumber slot);
  void give_room_back(SlotNumber slot);
  int scrub_unverified();

  SlabFiles files_;
  const SlotCodec codec_;
  const WallClock clock_;
  std::atomic<bool> is_ready_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<SlotIndex> index_;
  std::uint64_t last_us_ = 0;
  std::uint64_t epoch_ = 0;
  bool may_grow_ = true;

  AlignedBytes scratch_;  // of commit(), remove() and scrub()
};

}  // namespace pagoda::store
