#include "base/large_array.h"

#include <sys/mman.h>
#include <unistd.h>

namespace pagoda {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

void* allocate_large(std::size_t bytes) {
  void* const memory = ::operator new(bytes, std::align_val_t(kCacheLineBytes));
#ifdef MADV_HUGEPAGE
  if (bytes >= 2 * kHugePageBytes) {  // holds one whole huge page, wherever it starts
    const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(memory) % page_bytes;
    // madvise is a hint: where the kernel refuses, pages stay small and nothing else differs.
    static_cast<void>(
        madvise(static_cast<std::byte*>(memory) + skipped, bytes - skipped, MADV_HUGEPAGE));
  }
#endif
  return memory;
}

void free_large(void* memory) noexcept {
  ::operator delete(memory, std::align_val_t(kCacheLineBytes));
}

}  // namespace pagoda
