// DiskIoWorker is one thread that reads and writes slots, several at a time: it stages bytes where
// direct I/O can reach them, and seals, checks and copies them, so that no other thread does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "store/disk/aligned_bytes.h"
#include "store/disk/disk_store.h"
#include "store/disk/slot_io.h"

namespace pagoda::store {

class DiskIoWorker {
 public:
  DiskIoWorker(DiskStore& store, std::unique_ptr<SlotIo> io, std::size_t depth);

  // Runs until the store stops.
  void run();

 private:
  // A staging buffer and the request that uses it.
  struct StagingBuffer {
    explicit StagingBuffer(std::size_t slot_bytes) : bytes(slot_bytes) {}
    AlignedBytes bytes;
    std::unique_ptr<DiskRequest> request;  // nullptr: the buffer is free
    Slab::Reading reading;
    Slab::Writing writing;
    std::uint64_t sum = 0;
  };

  // False: the request ended at once, and the buffer is free.
  bool begin(std::size_t buffer_index);
  bool begin_read(StagingBuffer& buffer, std::size_t buffer_index);
  bool begin_write(StagingBuffer& buffer, std::size_t buffer_index);
  void end(StagingBuffer& buffer, const IoResult& result);
  kv::StoreFault end_read(StagingBuffer& buffer, const IoResult& result);
  kv::StoreFault end_write(StagingBuffer& buffer, const IoResult& result);

  DiskStore& store_;
  Slab& slab_;
  std::unique_ptr<SlotIo> io_;
  std::vector<StagingBuffer> buffers_;
  std::vector<std::size_t> free_;
  std::vector<IoDone> done_;
};

}  // namespace pagoda::store
