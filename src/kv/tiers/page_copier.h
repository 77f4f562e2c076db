// Copies whole pages between the pool and memory of the host, wherever the pool is.
//
// Stores never look into a page themselves: the pool may be in a device's memory. A store has a
// copier of its own and calls copy() on a thread of its own, so that neither the cache nor what it
// computes for waits for a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"

namespace pagoda::kv {

using HostMemory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

struct PageCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
};

class PageCopier {
 public:
  virtual ~PageCopier() = default;

  // Memory that pages are moved from and to; given back before the copier goes.
  virtual Result<HostMemory> take_memory(std::uint64_t bytes) = 0;

  // The cache's thread: whatever was begun with pages of the pool before this call has ended before
  // a move that is asked for after it begins.
  virtual Status order() = 0;

  // One thread. Returns when all have ended, after an error as well: any of them may then be half
  // done, and none goes on.
  virtual Status copy(std::span<const PageCopy> moves) = 0;
};

// For a pool in the host's memory, where nothing is computed beside the cache's thread. Copies with
// so many threads, where that has been faster lately than with one.
std::unique_ptr<PageCopier> memory_copier(std::size_t threads = 1);

}  // namespace pagoda::kv
