// AlignedBytes is memory that direct I/O accepts.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "store/disk/format.h"

namespace pagoda::store {

class AlignedBytes {
 public:
  // `bytes` is a multiple of kIoAlignment.
  explicit AlignedBytes(std::size_t bytes)
      : bytes_(bytes), memory_(static_cast<std::byte*>(std::aligned_alloc(kIoAlignment, bytes))) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace pagoda::store
