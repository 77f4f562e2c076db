#include "store/disk/disk_io_worker.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace pagoda::store {

using kv::StoreFault;

DiskIoWorker::DiskIoWorker(DiskStore& store, std::unique_ptr<SlotIo> io, std::size_t depth)
    : store_(store), slab_(*store.slab_), io_(std::move(io)) {
  const std::size_t slot_bytes = slab_.codec().geometry().slot_bytes();
  const std::size_t buffers = std::min(depth, io_->depth());
  for (std::size_t i = 0; i < buffers; ++i) {
    buffers_.emplace_back(slot_bytes);
    free_.push_back(i);
  }
}

void DiskIoWorker::run() {
  for (;;) {
    while (!free_.empty()) {
      const bool is_resting = free_.size() == buffers_.size();
      std::unique_ptr<DiskRequest> request = store_.take(is_resting);
      if (request == nullptr && is_resting) return;
      if (request == nullptr) break;
      const std::size_t buffer = free_.back();
      buffers_[buffer].request = std::move(request);
      if (begin(buffer)) free_.pop_back();
    }
    done_.clear();
    io_->wait(done_);
    for (const IoDone& done : done_) {
      end(buffers_[done.id], done.result);
      free_.push_back(done.id);
    }
  }
}

bool DiskIoWorker::begin(std::size_t buffer_index) {
  StagingBuffer& buffer = buffers_[buffer_index];
  DiskRequest& request = *buffer.request;
  StoreFault fault = StoreFault::kOff;
  if (store_.is_on(request.is_write)) {
    const bool has_begun =
        request.is_write ? begin_write(buffer, buffer_index) : begin_read(buffer, buffer_index);
    if (has_begun) return true;
    fault = request.is_write ? StoreFault::kNoRoom : StoreFault::kAbsent;
  }
  store_.finish(request, fault, 0);
  buffer.request.reset();
  return false;
}

bool DiskIoWorker::begin_read(StagingBuffer& buffer, std::size_t buffer_index) {
  const auto reading = slab_.begin_read(buffer.request->label.key);
  if (!reading) return false;
  buffer.reading = *reading;
  store_.throttle_.pass(buffer.bytes.span().size());
  io_->read(buffer_index, slab_.files().slab(), slab_.files().offset_of(reading->slot),
            buffer.bytes.span());
  return true;
}

bool DiskIoWorker::begin_write(StagingBuffer& buffer, std::size_t buffer_index) {
  DiskRequest& request = *buffer.request;
  const auto writing = slab_.begin_write();
  if (!writing) return false;
  std::optional<std::uint64_t> sum;
  if (store_.claim_bytes(request)) {
    sum = slab_.codec().seal(request.label, request.from, writing->written_us, buffer.bytes.span());
    store_.release_bytes(request);
  }
  if (!sum) {
    slab_.end_write(*writing, request.label, std::nullopt, 0);
    return false;
  }
  buffer.writing = *writing;
  buffer.sum = *sum;
  store_.throttle_.pass(buffer.bytes.span().size());
  io_->write(buffer_index, slab_.files().slab(), slab_.files().offset_of(writing->slot),
             buffer.bytes.span());
  return true;
}

void DiskIoWorker::end(StagingBuffer& buffer, const IoResult& result) {
  const StoreFault fault =
      buffer.request->is_write ? end_write(buffer, result) : end_read(buffer, result);
  store_.finish(*buffer.request, fault, result.error);
  buffer.request.reset();
}

StoreFault DiskIoWorker::end_read(StagingBuffer& buffer, const IoResult& result) {
  DiskRequest& request = *buffer.request;
  StoreFault fault = StoreFault::kTimeout;
  if (result.error != 0) {
    fault = StoreFault::kIo;
  } else if (store_.claim_bytes(request)) {
    // A slot that was cut short ends in zeros, and its sum is wrong.
    fault =
        slab_.codec().open(buffer.bytes.span(), buffer.reading.sum, request.label, request.into);
    store_.release_bytes(request);
  }
  return slab_.end_read(buffer.reading, fault);
}

StoreFault DiskIoWorker::end_write(StagingBuffer& buffer, const IoResult& result) {
  const auto sum = result.error == 0 ? std::optional(buffer.sum) : std::nullopt;
  if (slab_.end_write(buffer.writing, buffer.request->label, sum, result.error)) {
    return StoreFault::kNone;
  }
  const bool is_full = result.error == ENOSPC || result.error == EDQUOT;
  return is_full ? StoreFault::kNoRoom : StoreFault::kIo;
}

}  // namespace pagoda::store
