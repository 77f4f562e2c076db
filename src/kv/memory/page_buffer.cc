#include "kv/memory/page_buffer.h"

#include <sys/mman.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/byte_size.h"

namespace pagoda::kv::memory {

Result<PageBuffer> PageBuffer::allocate(const PageLayout& layout, std::uint32_t pages) {
  const std::size_t bytes = layout.page_bytes() * pages;
  ASSERT(bytes > 0, "a pool has pages");
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorCode::kOutOfRange,
                 "the KV cache needs " + format_byte_size(static_cast<double>(bytes)) +
                     ", more than the system gives: " + std::strerror(errno)};
  }
#ifdef MADV_HUGEPAGE
  // A layer's rows are spread over all pages: without large ones, most reads of a long context
  // would also look up where a page is. A refusal costs speed alone.
  static_cast<void>(madvise(data, bytes, MADV_HUGEPAGE));
#endif
  return PageBuffer(static_cast<std::byte*>(data), layout, pages);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), layout_(other.layout_), pages_(other.pages_) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(layout_, other.layout_);
  std::swap(pages_, other.pages_);
  return *this;
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) munmap(data_, layout_.page_bytes() * pages_);
}

void PageBuffer::fill_with_nan(BlockId id) const {
  // All bits set is a NaN in every element type.
  std::memset(page(id), 0xFF, layout_.page_bytes());
}

}  // namespace pagoda::kv::memory
