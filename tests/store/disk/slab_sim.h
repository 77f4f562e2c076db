// SlabSim runs a slab over a faulty disk, by seed, beside a model of what must be true:
//
// 1. A read that says kNone gives a page that was written under that very label, whole.
// 2. A page that a commit called durable is there after a crash, unless it was evicted, removed or
//    rewritten, or bits flipped.
// 3. A removed page never comes back, and no sector holds its bytes.
// 4. Without flips and crashes a placed page reads well, and nothing is called damaged.
// 5. All files together stay within the limit, always.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/disk/faulty_disk.h"
#include "store/disk/page_samples.h"
#include "store/disk/slab.h"

namespace pagoda::store {

struct SlabSimOptions {
  std::uint64_t seed = 0;
  std::uint64_t page_bytes = 700;
  std::uint32_t block_tokens = 4;
  std::uint64_t slots = 6;
  std::uint64_t pages = 16;  // pages that are ever written
  std::uint64_t steps = 120;
  bool is_encrypted = false;
  bool has_flips = false;
  DiskFaults faults;           // while the simulation runs; checks run without faults
  std::int64_t crash_at = -1;  // change at which the first crash happens; -1: by chance
  bool is_trace = false;
};

// run() returns the first rule that was broken, or nothing.
class SlabSim {
 public:
  explicit SlabSim(const SlabSimOptions& options);
  std::string run();
  // Returns how many changes the disk saw: a crash may happen at each.
  std::uint64_t changes() const { return disk_.changes(); }

  std::uint64_t crashes = 0;
  std::uint64_t pages_durable_checked = 0;

 private:
  struct Page {
    kv::PageLabel label;
    std::uint64_t versions = 0;  // versions written so far
    bool is_durable = false;
    bool is_placed = false;   // placed since the last commit or before
    bool is_removed = false;  // removed durably, and not written since
  };
  struct Writing {
    std::size_t page = 0;
    Slab::Writing slot;
    std::uint64_t version = 0;
    bool is_written = false;  // its I/O is done
    std::optional<std::uint64_t> sum;
    int error = 0;
  };

  std::uint64_t draw(std::uint64_t below);
  void fail(const std::string& rule);
  void step();
  void open();
  void begin_write();
  void write_slot(Writing& writing);
  void end_write(std::size_t index);
  void read(std::size_t page, bool is_calm);
  void hold_or_end_read(std::size_t page);
  void read_wrong_label(std::size_t page);
  void commit();
  void remove();
  void scrub();
  void end_writes();
  void close_and_open();
  void crash_and_open();
  void check_durable();
  bool is_known_page(std::size_t page, std::span<const std::byte> bytes) const;
  bool is_there(std::size_t page) const;
  SlotCodec codec() const;

  SlabSimOptions options_;
  FaultyDisk disk_;
  std::uint64_t bytes_max_;
  std::uint64_t draws_ = 0;
  std::uint64_t now_us_ = 1'000'000;
  std::uint64_t flips_ = 0;
  std::unique_ptr<FileLayer> layer_;
  std::unique_ptr<Slab> slab_;
  std::vector<Page> pages_;
  std::vector<Writing> writing_;
  std::optional<std::pair<std::size_t, Slab::Reading>> held_;  // a read that is held
  std::uint64_t held_syncs_failed_ = 0;
  bool may_held_go_ = false;  // the held page was removed or rewritten meanwhile
  std::unique_ptr<AlignedBytes> buffer_;
  bool has_crashed_ = false;  // the index may have entries without their pages
  std::string broken_;
};

}  // namespace pagoda::store
