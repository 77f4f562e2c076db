#include "counted_allocations.h"

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr std::size_t kNameBytes = 16;   // that a thread's name has at most
constexpr std::size_t kOwnerBytes = 24;  // of a shared_ptr that was given a plain pointer

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> bytes_allocated{0};
std::atomic<std::int64_t> bytes_held{0};
std::atomic<std::int64_t> bytes_held_most{0};

char failing_thread[kNameBytes] = {};
bool fails_at_any_size = false;
std::atomic<bool> is_armed{false};
std::atomic<std::int64_t> passes_left{0};
std::atomic<bool> has_failed{false};

bool is_to_fail(std::size_t bytes) noexcept {
  if (!is_armed.load(std::memory_order_acquire)) return false;
  const bool is_spared =
      bytes % 16 == 0 || bytes == sizeof(pthread_mutex_t) || bytes == kOwnerBytes;
  if (is_spared && !fails_at_any_size) return false;
  char name[kNameBytes] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (std::strcmp(name, failing_thread) != 0) return false;
  if (passes_left.fetch_sub(1) != 0) return false;
  has_failed = true;
  return true;
}

void* counted(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return nullptr;
  ++allocations;
  bytes_allocated += bytes;
  const auto usable = static_cast<std::int64_t>(malloc_usable_size(memory));
  const std::int64_t held = bytes_held.fetch_add(usable) + usable;
  std::int64_t most = bytes_held_most.load();
  while (held > most && !bytes_held_most.compare_exchange_weak(most, held)) {
  }
  return memory;
}

void* allocate(std::size_t bytes) noexcept {
  return is_to_fail(bytes) ? nullptr : counted(std::malloc(bytes), bytes);
}

void* allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
  if (is_to_fail(bytes)) return nullptr;
  const auto align = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(align, (bytes + align - 1) / align * align), bytes);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_back(void* memory) noexcept {
  if (memory != nullptr) bytes_held -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

namespace pagoda {

std::uint64_t allocations_so_far() { return allocations; }
std::uint64_t bytes_allocated_so_far() { return bytes_allocated; }

HeldBytes::HeldBytes() : before_(bytes_held) { bytes_held_most = before_; }
std::uint64_t HeldBytes::most() const {
  return static_cast<std::uint64_t>(bytes_held_most - before_);
}
std::uint64_t HeldBytes::now() const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_held - before_, 0));
}

FailedAllocation::FailedAllocation(const std::string& thread_name, std::uint64_t passed,
                                   bool of_any_size) {
  fails_at_any_size = of_any_size;
  std::strncpy(failing_thread, thread_name.c_str(), kNameBytes - 1);
  passes_left = static_cast<std::int64_t>(passed);
  has_failed = false;
  is_armed.store(true, std::memory_order_release);
}
FailedAllocation::~FailedAllocation() { is_armed = false; }
bool FailedAllocation::happened() const { return has_failed; }

}  // namespace pagoda

// Every form: under AddressSanitizer one that is left out is its own, whose memory free() refuses.
void* operator new(std::size_t bytes) { return or_throw(allocate(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignment);
}
void* operator new[](std::size_t bytes) { return or_throw(allocate(bytes)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, alignment));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return allocate(bytes, alignment);
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
