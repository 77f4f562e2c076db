#include "store/disk/slab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace pagoda::store {

using kv::StoreFault;

namespace {

constexpr std::size_t kSlotsBlankedAtOnce = 256;  // with one commit

}  // namespace

std::uint64_t wall_clock_us() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count());
}

Slab::Slab(SlabFiles files, SlotCodec codec, WallClock clock)
    : files_(std::move(files)),
      codec_(codec),
      clock_(std::move(clock)),
      index_(std::make_unique<SlotIndex>(0)),
      scratch_(codec_.geometry().slot_bytes()) {}

// The time strictly increases, also when the wall clock is set back: it orders slots by use.
std::uint64_t Slab::now_us() { return last_us_ = std::max(last_us_ + 1, clock_()); }

int Slab::load(const std::function<void()>& on_progress) {
  auto index = std::make_unique<SlotIndex>(files_.slots_max());
  const int error = files_.load(*index, on_progress);
  if (error != 0) return error;
  find_blank_slots(*index);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < index->slots_max(); ++i) {
    last_us_ = std::max(last_us_, index->record(static_cast<SlotNumber>(i)).used_us);
  }
  index_ = std::move(index);
  is_ready_.store(true, std::memory_order_release);
  return 0;
}

// Free slots of which the file has no bytes need not be overwritten by a removal.
void Slab::find_blank_slots(SlotIndex& index) const {
  const std::uint64_t slot_bytes = files_.offset_of(1);
  for (std::uint64_t slot = 0; slot < index.slots_max();) {
    const ByteRange data = files_.slab().next_data(slot * slot_bytes);
    const std::uint64_t first = std::min<std::uint64_t>(data.begin / slot_bytes, index.slots_max());
    for (; slot < first; ++slot) {
      const auto number = static_cast<SlotNumber>(slot);
      if (!index.is_used(number)) index.set_blank(number);
    }
    slot = std::max(slot, data.end / slot_bytes + (data.end % slot_bytes == 0 ? 0 : 1));
  }
}

std::size_t Slab::find(std::span<const kv::PageKey> keys) const {
  const std::lock_guard lock(mutex_);
  std::size_t found = 0;
  while (found < keys.size() && index_->find(codec_.digest(keys[found]))) ++found;
  return found;
}

bool Slab::keeps(const kv::PageKey& key) {
  const KeyDigest digest = codec_.digest(key);
  const std::lock_guard lock(mutex_);
  const auto slot = index_->find(digest);
  if (slot) index_->touch(*slot, now_us(), false);
  return slot.has_value();
}

std::optional<Slab::Reading> Slab::begin_read(const kv::PageKey& key) {
  const KeyDigest digest = codec_.digest(key);
  const std::lock_guard lock(mutex_);
  const auto slot = index_->find(digest);
  if (!slot) return std::nullopt;
  index_->pin(*slot);
  return Reading{*slot, index_->record(*slot).sum};
}

StoreFault Slab::end_read(const Reading& reading, StoreFault fault) {
  const std::lock_guard lock(mutex_);
  index_->unpin(reading.slot);
  const bool is_same =
      index_->is_used(reading.slot) && index_->record(reading.slot).sum == reading.sum;
  switch (fault) {
    case StoreFault::kNone:
      if (is_same) {
        index_->set_verified(reading.slot);
        index_->touch(reading.slot, now_us(), true);
      }
      return fault;  // the bytes were whole when they were read
    case StoreFault::kDamaged:
    case StoreFault::kAbsent:
      if (!is_same) return StoreFault::kAbsent;
      index_->drop(reading.slot);
      return fault;
    default:
      return fault;
  }
}

std::optional<Slab::Writing> Slab::begin_write() {
  const std::lock_guard lock(mutex_);
  const auto slot = index_->take(may_grow_);
  if (!slot) return std::nullopt;
  return Writing{*slot, now_us(), epoch_};
}

bool Slab::end_write(const Writing& writing, const kv::PageLabel& label,
                     std::optional<std::uint64_t> sum, int error) {
  SlotRecord record = {codec_.digest(label.key), label.key.space, label.owner, 0, 0};
  const std::lock_guard lock(mutex_);
  if (error == ENOSPC || error == EDQUOT) may_grow_ = false;
  // A sync that failed since the write began may have lost its bytes, and will not say so again.
  if (!sum || writing.epoch != epoch_) {
    index_->give_back(writing.slot);
    return false;
  }
  record.sum = *sum;
  record.used_us = now_us();
  index_->place(writing.slot, record);
  return true;
}

void Slab::allow_growth() {
  const std::lock_guard lock(mutex_);
  may_grow_ = true;
}

int Slab::commit() {
  std::vector<SlotChange> changes;
  {
    const std::lock_guard lock(mutex_);
    changes = index_->take_changes();
  }
  if (changes.empty()) return 0;
  if (const int error = files_.sync_slab(); error != 0) {
    const std::lock_guard lock(mutex_);
    ++epoch_;
    // Every page placed since the last good sync may be lost: later syncs would not say so.
    for (const SlotChange& change : index_->take_changes()) changes.push_back(change);
    for (const SlotChange& change : changes) index_->distrust(change);
    return error;
  }
  int error = files_.write_records(changes);
  if (error == 0) error = files_.sync_index();
  if (error != 0) {
    const std::lock_guard lock(mutex_);
    for (const SlotChange& change : changes) index_->mark_changed(change.slot);
  }
  return error;
}

std::optional<StoreFault> Slab::scrub(SlotNumber& slot) {
  Reading reading;
  {
    const std::lock_guard lock(mutex_);
    while (slot < index_->slots_max() && !index_->is_used(slot)) ++slot;
    if (slot >= index_->slots_max()) return std::nullopt;
    index_->pin(slot);
    reading = {slot, index_->record(slot).sum};
  }
  ++slot;
  const IoResult read = files_.read_slot(reading.slot, scratch_.span());
  const StoreFault fault =
      read.error != 0 ? StoreFault::kIo : codec_.check(scratch_.span(), reading.sum);
  const std::lock_guard lock(mutex_);
  index_->unpin(reading.slot);
  const bool is_same =
      index_->is_used(reading.slot) && index_->record(reading.slot).sum == reading.sum;
  if (!is_same) return StoreFault::kNone;
  if (fault == StoreFault::kNone) index_->set_verified(reading.slot);
  if (fault == StoreFault::kDamaged || fault == StoreFault::kAbsent) index_->drop(reading.slot);
  return fault;
}

// True: every used slot holds what its record says.
bool Slab::verify() {
  for (SlotNumber slot = 0;;) {
    {
      const std::lock_guard lock(mutex_);
      while (slot < index_->slots_max() && (!index_->is_used(slot) || index_->is_verified(slot))) {
        ++slot;
      }
    }
    const auto fault = scrub(slot);
    if (!fault) return true;
    if (*fault == StoreFault::kIo) return false;
  }
}

SlotIndex::TakenOut Slab::take_out(const std::optional<kv::OwnerTag>& owner) {
  const std::lock_guard lock(mutex_);
  return index_->take_out(owner);
}

// A slot that was taken and never written has no bytes: on a full disk zeros would find no room.
bool Slab::write_zeros(SlotNumber slot) {
  const std::span<std::byte> zeros = scratch_.span();
  const std::uint64_t begin = files_.offset_of(slot);
  if (files_.slab().next_data(begin).begin >= begin + zeros.size()) return true;
  std::fill(zeros.begin(), zeros.end(), std::byte{0});
  return files_.write_slot(slot, zeros).error == 0;
}

// Slots go back some at a time, so that writes of others find room and are committed meanwhile.
Result<kv::Removal> Slab::blank(const SlotIndex::TakenOut& out, bool are_all_verified) {
  std::vector<SlotNumber> slots = out.used;
  slots.insert(slots.end(), out.leftovers.begin(), out.leftovers.end());
  std::sort(slots.begin(), slots.end());
  bool is_overwritten = are_all_verified;
  int error = 0;
  // Once also without a slot: a page that was overwritten lately is on the disk until a commit.
  std::size_t first = 0;
  do {
    const std::size_t count = std::min(kSlotsBlankedAtOnce, slots.size() - first);
    const int failed = blank(std::span(slots).subspan(first, count), is_overwritten);
    if (error == 0) error = failed;
    first += count;
  } while (first < slots.size());
  const std::size_t pages = out.used.size();
  if (error != 0) {
    return Error{ErrorCode::kIo, fmt::format("the removal of {} pages is not durable: {}", pages,
                                             error_text(error))};
  }
  return kv::Removal{.pages = pages,
                     .bytes = pages * codec_.geometry().slot_bytes(),
                     .overwritten = is_overwritten};
}

// Slots stay taken until their room is given back: no write may begin in a slot before that. The
// mutex is held for moments only, since the engine's thread looks pages up meanwhile. Returns the
// error of the commit; clears `is_overwritten` where zeros could not be written.
int Slab::blank(std::span<const SlotNumber> slots, bool& is_overwritten) {
  std::vector<SlotNumber> blank;
  std::vector<SlotNumber> failed;
  for (const SlotNumber slot : slots) {
    (write_zeros(slot) ? blank : failed).push_back(slot);
    const std::lock_guard lock(mutex_);
    index_->mark_changed(slot);  // so that commit() syncs the zeros too
  }
  is_overwritten = is_overwritten && failed.empty();
  const int error = commit();
  if (error == 0) make_holes(blank);  // so that the next removal does not blank the slots again
  const std::lock_guard lock(mutex_);
  for (const SlotNumber slot : blank) index_->put_back(slot, error == 0);
  for (const SlotNumber slot : failed) index_->put_back(slot, false);
  return error;
}

// `slots` are in order; neighbours become one hole.
void Slab::make_holes(std::span<const SlotNumber> slots) {
  for (std::size_t first = 0; first < slots.size();) {
    std::size_t end = first + 1;
    while (end < slots.size() && slots[end] == slots[end - 1] + 1) ++end;
    const std::uint64_t offset = files_.offset_of(slots[first]);
    files_.slab().make_hole(offset, files_.offset_of(slots[end - 1] + 1) - offset);
    first = end;
  }
}

Result<kv::Removal> Slab::remove(const std::optional<kv::OwnerTag>& owner) {
  const bool are_all_verified = verify();
  return blank(take_out(owner), are_all_verified);
}

int Slab::close() {
  if (files_.is_read_only() || !is_ready()) return 0;
  {
    const std::lock_guard lock(mutex_);
    index_->mark_touched_changed();
  }
  if (const int error = commit(); error != 0) return error;
  {
    // Slots that a crash before this process left in doubt still are.
    const std::lock_guard lock(mutex_);
    if (!index_->are_all_verified()) return 0;
  }
  return files_.set_closed(true);
}

bool Slab::has_changes() const {
  const std::lock_guard lock(mutex_);
  return index_->has_changes();
}

std::uint64_t Slab::syncs_failed() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}

Slab::Counts Slab::counts() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = index_->slots_used();
  return {used, files_.bytes_with(used), index_->evicted(), index_->evicted_unread()};
}

void Slab::check() const {
  const std::lock_guard lock(mutex_);
  index_->check();
}

}  // namespace pagoda::store
