#include "counted_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> bytes_allocated{0};
}  // namespace

std::uint64_t pagoda::allocations_so_far() { return allocations; }
std::uint64_t pagoda::bytes_allocated_so_far() { return bytes_allocated; }

namespace {
void* counted(std::size_t bytes) noexcept {
  ++allocations;
  bytes_allocated += bytes;
  return std::malloc(bytes);
}
void* counted(std::size_t bytes, std::align_val_t alignment) noexcept {
  ++allocations;
  bytes_allocated += bytes;
  const auto align = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}
void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// Every form: under AddressSanitizer one that is left out is its own, whose memory free() refuses.
void* operator new(std::size_t bytes) { return or_throw(counted(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(counted(bytes, alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, alignment);
}
void* operator new[](std::size_t bytes) { return or_throw(counted(bytes)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return or_throw(counted(bytes, alignment));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return counted(bytes, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
