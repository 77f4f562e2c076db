// SlotIndex knows which slot holds which page, in memory: a table by key, an order by use, the free
// slots, and which records the file does not have yet. Pure: it knows no file and no thread.
//
//            take()               place()
//   free ------------> taken ----------------> used
//    ^                   |  give_back()         |
//    |<------------------+                      | drop(): its bytes are no good
//    |<-----------------------------------------+
//    |        put_back()             take_out() |
//    +---------------------- taken <------------+      take() may evict the least recently used
//
// A pinned slot is being read: it is not evicted. It may be dropped or taken out; its reader then
// sees that the record is another one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "store/disk/format.h"
#include "store/disk/slot_table.h"

namespace pagoda::store {

// SlotChange is a record that the file should have.
struct SlotChange {
  SlotNumber slot = 0;
  SlotRecord record;
};

class SlotIndex {
 public:
  explicit SlotIndex(std::size_t slots_max);
  SlotIndex(const SlotIndex&) = delete;
  SlotIndex& operator=(const SlotIndex&) = delete;

  // Takes a slot's record while the file is read. `is_verified`: the slot's bytes are known to be
  // those of its record. Of two slots with one key the later used stays.
  void load(SlotNumber slot, const SlotRecord& record, bool is_verified);
  // The file's record is worthless: the slot is free, and the record is to be overwritten.
  void load_damaged(SlotNumber slot) { mark_changed(slot); }
  // Call once, after the last load().
  void finish_loading();

  std::size_t slots_max() const { return states_.size(); }
  std::size_t slots_used() const { return used_; }
  std::uint64_t evicted() const { return evicted_; }
  std::uint64_t evicted_unread() const { return evicted_unread_; }

  std::optional<SlotNumber> find(const KeyDigest& key) const { return table_.find(key); }
  const SlotRecord& record(SlotNumber slot) const { return records_[slot]; }
  bool is_used(SlotNumber slot) const { return states_[slot] == State::kUsed; }
  bool is_verified(SlotNumber slot) const { return has(slot, kVerified); }
  bool are_all_verified() const;
  void set_verified(SlotNumber slot) { flags_[slot] |= kVerified; }

  // The slot's last use is now; `is_read`: its bytes were wanted.
  void touch(SlotNumber slot, std::uint64_t now_us, bool is_read);
  void pin(SlotNumber slot) { ++pins_[slot]; }
  void unpin(SlotNumber slot);

  // Takes a slot to write into. `may_grow` false: evicts a page rather than take a free slot, since
  // the disk is full. Nothing: all slots are pinned or taken.
  std::optional<SlotNumber> take(bool may_grow);
  void place(SlotNumber slot, const SlotRecord& record);
  void give_back(SlotNumber slot);
  void drop(SlotNumber slot);

  struct TakenOut {
    std::vector<SlotNumber> used;
    std::vector<SlotNumber> leftovers;  // free slots with bytes of unknown owners
  };
  // Takes out the owner's slots, or all without an owner, and every free slot whose bytes are not
  // blank.
  TakenOut take_out(const std::optional<kv::OwnerTag>& owner);
  void put_back(SlotNumber slot, bool is_blank);
  // The slot's bytes are zero; call while the file is read, and for free slots alone.
  void set_blank(SlotNumber slot) { flags_[slot] |= kBlank; }

  bool has_changes() const { return !changed_.empty(); }
  // Returns the records the file lacks, by slot; the file counts as having them from now on.
  std::vector<SlotChange> take_changes();
  void mark_changed(SlotNumber slot);
  // The slot's bytes may have changed since the change was taken.
  void distrust(const SlotChange& change);
  // Makes uses that are not in the file yet into changes, for a clean end.
  void mark_touched_changed();

  // Checks every invariant; for tests.
  void check() const;

 private:
  enum class State : std::uint8_t { kFree, kTaken, kUsed };
  enum Flag : std::uint8_t {
    kRead = 1,      // read since it was placed, as far as is known
    kChanged = 2,   // in changed_
    kVerified = 4,  // bytes and record agreed when last seen together
    kBlank = 8,     // its bytes are zero
    kTouched = 16,  // used since its record was last written
  };
  static constexpr SlotNumber kNobody = 0xFFFF'FFFF;

  bool has(SlotNumber slot, Flag flag) const { return (flags_[slot] & flag) != 0; }
  void clear(SlotNumber slot, Flag flag) { flags_[slot] &= static_cast<std::uint8_t>(~flag); }
  void link_newest(SlotNumber slot);
  void unlink(SlotNumber slot);
  void forget(SlotNumber slot, State next);
  std::optional<SlotNumber> evict();

  LargeArray<SlotRecord> records_;
  SlotTable table_;
  std::vector<State> states_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint16_t> pins_;
  std::vector<SlotNumber> newer_;  // the order by use
  std::vector<SlotNumber> older_;
  SlotNumber newest_ = kNobody;
  SlotNumber oldest_ = kNobody;
  std::vector<SlotNumber> free_;
  std::vector<SlotNumber> changed_;
  std::size_t used_ = 0;
  std::uint64_t evicted_ = 0;
  std::uint64_t evicted_unread_ = 0;
};

}  // namespace pagoda::store
