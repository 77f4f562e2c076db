// LargeArray is a vector for tables that are read at random: the memory starts on a cache line, and
// a large array asks for huge pages. With pages of 4 KiB a random read of a 64 MiB table misses the
// TLB as well as the caches, which costs about as much again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace pagoda {

inline constexpr std::size_t kCacheLineBytes = 64;

// Returns memory for `bytes` bytes, aligned at least to a cache line; throws std::bad_alloc.
void* allocate_large(std::size_t bytes);
void free_large(void* memory) noexcept;

template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class Other>
  explicit LargeAllocator(const LargeAllocator<Other>& /*other*/) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T))
      throw std::bad_array_new_length();
    return static_cast<T*>(allocate_large(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t /*count*/) noexcept { free_large(memory); }
  bool operator==(const LargeAllocator& /*other*/) const { return true; }
};

template <class T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

}  // namespace pagoda
