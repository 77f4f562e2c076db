#include "store/disk/disk_lane.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace pagoda::store {

using kv::StoreFault;

DiskLane::DiskLane(DiskStore& store, std::unique_ptr<SlotIo> io, std::size_t depth)
    : store_(store), slab_(*store.slab_), io_(std::move(io)) {
  const std::size_t slot_bytes = slab_.codec().geometry().slot_bytes();
  const std::size_t berths = std::min(depth, io_->depth());
  for (std::size_t i = 0; i < berths; ++i) {
    berths_.emplace_back(slot_bytes);
    free_.push_back(i);
  }
}

void DiskLane::run() {
  for (;;) {
    while (!free_.empty()) {
      const bool is_resting = free_.size() == berths_.size();
      std::unique_ptr<DiskStore::Request> request = store_.take(is_resting);
      if (request == nullptr && is_resting) return;
      if (request == nullptr) break;
      const std::size_t berth = free_.back();
      berths_[berth].request = std::move(request);
      if (begin(berth)) free_.pop_back();
    }
    done_.clear();
    io_->wait(done_);
    for (const IoDone& done : done_) {
      end(berths_[done.id], done.result);
      free_.push_back(done.id);
    }
  }
}

bool DiskLane::begin(std::size_t berth_index) {
  Berth& berth = berths_[berth_index];
  DiskStore::Request& request = *berth.request;
  StoreFault fault = StoreFault::kOff;
  if (store_.is_on(request.is_write)) {
    const bool has_begun =
        request.is_write ? begin_write(berth, berth_index) : begin_read(berth, berth_index);
    if (has_begun) return true;
    fault = request.is_write ? StoreFault::kNoRoom : StoreFault::kAbsent;
  }
  store_.finish(request, fault, 0);
  berth.request.reset();
  return false;
}

bool DiskLane::begin_read(Berth& berth, std::size_t berth_index) {
  const auto reading = slab_.begin_read(berth.request->label.key);
  if (!reading) return false;
  berth.reading = *reading;
  store_.throttle_.pass(berth.bytes.span().size());
  io_->read(berth_index, slab_.files().slab(), slab_.files().offset_of(reading->slot),
            berth.bytes.span());
  return true;
}

bool DiskLane::begin_write(Berth& berth, std::size_t berth_index) {
  DiskStore::Request& request = *berth.request;
  const auto writing = slab_.begin_write();
  if (!writing) return false;
  std::optional<std::uint64_t> sum;
  if (store_.claim_bytes(request)) {
    sum = slab_.codec().seal(request.label, request.from, writing->written_us, berth.bytes.span());
    store_.release_bytes(request);
  }
  if (!sum) {
    slab_.end_write(*writing, request.label, std::nullopt, 0);
    return false;
  }
  berth.writing = *writing;
  berth.sum = *sum;
  store_.throttle_.pass(berth.bytes.span().size());
  io_->write(berth_index, slab_.files().slab(), slab_.files().offset_of(writing->slot),
             berth.bytes.span());
  return true;
}

void DiskLane::end(Berth& berth, const IoResult& result) {
  const StoreFault fault =
      berth.request->is_write ? end_write(berth, result) : end_read(berth, result);
  store_.finish(*berth.request, fault, result.error);
  berth.request.reset();
}

StoreFault DiskLane::end_read(Berth& berth, const IoResult& result) {
  DiskStore::Request& request = *berth.request;
  StoreFault fault = StoreFault::kTimeout;
  if (result.error != 0) {
    fault = StoreFault::kIo;
  } else if (store_.claim_bytes(request)) {
    // A slot that was cut short ends in zeros, and its sum is wrong.
    fault = slab_.codec().open(berth.bytes.span(), berth.reading.sum, request.label, request.into);
    store_.release_bytes(request);
  }
  return slab_.end_read(berth.reading, fault);
}

StoreFault DiskLane::end_write(Berth& berth, const IoResult& result) {
  const auto sum = result.error == 0 ? std::optional(berth.sum) : std::nullopt;
  if (slab_.end_write(berth.writing, berth.request->label, sum, result.error)) {
    return StoreFault::kNone;
  }
  const bool is_full = result.error == ENOSPC || result.error == EDQUOT;
  return is_full ? StoreFault::kNoRoom : StoreFault::kIo;
}

}  // namespace pagoda::store
