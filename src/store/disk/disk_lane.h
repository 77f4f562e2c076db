// One thread that reads and writes slots, several at a time: it stages bytes where direct I/O can
// reach them, and seals, checks and copies them, so that no other thread does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "store/disk/aligned_bytes.h"
#include "store/disk/disk_store.h"
#include "store/disk/slot_io.h"

namespace pagoda::store {

class DiskLane {
 public:
  DiskLane(DiskStore& store, std::unique_ptr<SlotIo> io, std::size_t depth);

  // Until the store stops.
  void run();

 private:
  // A staging buffer and what it is used for.
  struct Berth {
    explicit Berth(std::size_t slot_bytes) : bytes(slot_bytes) {}
    AlignedBytes bytes;
    std::unique_ptr<DiskStore::Request> request;  // nothing: free
    Slab::Reading reading;
    Slab::Writing writing;
    std::uint64_t sum = 0;
  };

  // False: it ended at once, the berth is free.
  bool begin(std::size_t berth_index);
  bool begin_read(Berth& berth, std::size_t berth_index);
  bool begin_write(Berth& berth, std::size_t berth_index);
  void end(Berth& berth, const IoResult& result);
  kv::StoreFault end_read(Berth& berth, const IoResult& result);
  kv::StoreFault end_write(Berth& berth, const IoResult& result);

  DiskStore& store_;
  Slab& slab_;
  std::unique_ptr<SlotIo> io_;
  std::vector<Berth> berths_;
  std::vector<std::size_t> free_;
  std::vector<IoDone> done_;
};

}  // namespace pagoda::store
