// The bytes of all pages, taken from the operating system at once and given back together. What is
// untouched costs no memory, but for the rest of a large page of the system. In dev builds
// fill_with_nan() marks pages nobody may read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "kv/ids.h"
#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

class PageBuffer {
 public:
  static Result<PageBuffer> allocate(const PageLayout& layout, std::uint32_t pages);

  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;
  ~PageBuffer();

  std::byte* data() const { return data_; }
  std::byte* page(BlockId id) const { return data_ + id.value() * layout_.page_bytes(); }
  std::uint32_t pages() const { return pages_; }
  const PageLayout& layout() const { return layout_; }

  // Every element of the page becomes NaN: a value read from it spoils what it touches.
  void fill_with_nan(BlockId id) const;

 private:
  PageBuffer(std::byte* data, const PageLayout& layout, std::uint32_t pages)
      : data_(data), layout_(layout), pages_(pages) {}

  std::byte* data_;
  PageLayout layout_;
  std::uint32_t pages_;
};

}  // namespace pagoda::kv::memory
