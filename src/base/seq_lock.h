// SeqLock holds a value that one thread writes often and any thread reads whole, without a lock.
// The writer never waits; a reader that met a write tries again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pagoda {

template <class T>
class SeqLock {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SeqLock(const T& value = T{}) { write(value); }

  // Only one thread may call write().
  void write(const T& value) {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), &value, sizeof(T));
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    // Each store is ordered after the odd version, and each load below before the second read of
    // the version.
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  T read() const {
    std::array<std::uint64_t, kWords> words;
    for (;;) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
    }
    T value;
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
    return value;
  }

 private:
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;

  std::atomic<std::uint64_t> version_{0};  // odd while a write is under way
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace pagoda
