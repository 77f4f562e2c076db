#include "store/disk/slab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace pagoda::store {

using kv::StoreFault;

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
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < index->slots_max(); ++i) {
    last_us_ = std::max(last_us_, index->record(static_cast<SlotNumber>(i)).used_us);
  }
  index_ = std::move(index);
  is_ready_.store(true, std::memory_order_release);
  return 0;
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

int Slab::scrub_unverified() {
  for (SlotNumber slot = 0;;) {
    {
      const std::lock_guard lock(mutex_);
      while (slot < index_->slots_max() && (!index_->is_used(slot) || index_->is_verified(slot))) {
        ++slot;
      }
    }
    const auto fault = scrub(slot);
    if (!fault) return 0;
    if (*fault == StoreFault::kIo) return EIO;
  }
}

bool Slab::blank(SlotNumber slot) {
  const std::span<std::byte> zeros = scratch_.span();
  if (files_.slab().is_hole(files_.offset_of(slot), zeros.size())) return true;
  std::fill(zeros.begin(), zeros.end(), std::byte{0});
  return files_.write_slot(slot, zeros).error == 0;
}

Result<kv::Removal> Slab::remove(const std::optional<kv::OwnerTag>& owner) {
  const int unread = scrub_unverified();
  SlotIndex::TakenOut out;
  {
    const std::lock_guard lock(mutex_);
    out = index_->take_out(owner);
  }
  kv::Removal removal = {out.used.size(), out.used.size() * codec_.geometry().slot_bytes(), true};
  removal.overwritten = unread == 0;
  for (const std::vector<SlotNumber>* const slots : {&out.used, &out.leftovers}) {
    for (const SlotNumber slot : *slots) {
      const bool is_blank = blank(slot);
      removal.overwritten = removal.overwritten && is_blank;
      const std::lock_guard lock(mutex_);
      index_->put_back(slot, is_blank);
      index_->mark_changed(slot);  // so that commit() syncs the zeros too
    }
  }
  if (const int error = commit(); error != 0) {
    return Error{ErrorCode::kIo, fmt::format("the removal of {} pages is not durable: {}",
                                             removal.pages, error_text(error))};
  }
  // The zeros are on the disk: made into holes, the slots are not blanked again by the next
  // removal.
  for (const std::vector<SlotNumber>* const slots : {&out.used, &out.leftovers}) {
    for (const SlotNumber slot : *slots) give_room_back(slot);
  }
  return removal;
}

void Slab::give_room_back(SlotNumber slot) {
  const std::lock_guard lock(mutex_);  // no write may begin in the slot
  if (!index_->is_blank(slot)) return;
  files_.slab().make_hole(files_.offset_of(slot), scratch_.span().size());
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
