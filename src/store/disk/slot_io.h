// SlotIo reads and writes slots, several at once where the kernel can. One thread uses one SlotIo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "store/disk/file_layer.h"

namespace pagoda::store {

struct IoDone {
  std::size_t id = 0;  // as given to read() or write()
  IoResult result;     // all the bytes, or an error, or the file's end
};

class SlotIo {
 public:
  virtual ~SlotIo() = default;
  // At most so many transfers may be under way; their ids are below it.
  virtual std::size_t depth() const = 0;
  virtual void read(std::size_t id, DiskFile& file, std::uint64_t offset,
                    std::span<std::byte> bytes) = 0;
  virtual void write(std::size_t id, DiskFile& file, std::uint64_t offset,
                     std::span<const std::byte> bytes) = 0;
  // Appends at least one transfer that ended; one must be under way. Until a transfer ends its
  // bytes are the kernel's: nobody else may touch them, whatever goes wrong.
  virtual void wait(std::vector<IoDone>& done) = 0;
};

// Transfers one at a time, by the calls that every system has.
std::unique_ptr<SlotIo> make_plain_io();
// Transfers by io_uring. Nothing: not built in, or the kernel refuses. `break_after`, for tests: so
// many calls later the kernel takes nothing more from the ring; 0: never.
std::unique_ptr<SlotIo> make_uring_io(std::size_t depth, std::size_t break_after = 0);

}  // namespace pagoda::store
