// A budget of bytes that requests share: a request reserves memory here before it allocates it.
// Every function may be called by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace pagoda::server {

// Copies share one count, which lives as long as a copy or a hold does: the engine may destroy a
// request, with its hold, after the server is gone.
class ByteBudget {
 public:
  class Hold;

  // `option` is the name of the option that sets the budget, for errors.
  explicit ByteBudget(std::uint64_t bytes_max, std::string option = {})
      : count_(std::make_shared<Count>(bytes_max, std::move(option))) {}

  // Call this before the first hold exists.
  void set_max(std::uint64_t bytes_max) { count_->bytes_max = bytes_max; }
  std::uint64_t bytes_max() const { return count_->bytes_max; }
  const std::string& option() const { return count_->option; }
  std::uint64_t bytes_held() const { return count_->bytes_held.load(std::memory_order_relaxed); }

 private:
  struct Count {
    Count(std::uint64_t most, std::string name) : bytes_max(most), option(std::move(name)) {}

    std::uint64_t bytes_max;
    std::string option;
    std::atomic<std::uint64_t> bytes_held{0};
  };

  ByteBudget() = default;  // counts nothing

  bool take(std::uint64_t bytes) {
    std::uint64_t held = bytes_held();
    do {
      if (bytes > bytes_max() || held > bytes_max() - bytes) return false;
    } while (
        !count_->bytes_held.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void give(std::uint64_t bytes) { count_->bytes_held.fetch_sub(bytes, std::memory_order_relaxed); }

  std::shared_ptr<Count> count_;
};

// A Hold is a reserved part of the budget and releases it when destroyed.
class ByteBudget::Hold {
 public:
  Hold() = default;  // holds no bytes
  explicit Hold(const ByteBudget& budget) : budget_(budget) {}
  Hold(Hold&& other) noexcept
      : budget_(std::exchange(other.budget_, {})), bytes_(std::exchange(other.bytes_, 0)) {}
  Hold& operator=(Hold&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    budget_ = std::exchange(other.budget_, {});
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~Hold() { give_back(); }

  // Returns false, and leaves the hold as it was, when the budget does not have that many bytes.
  bool resize(std::uint64_t bytes) {
    if (!counts()) return true;
    if (bytes > bytes_ && !budget_.take(bytes - bytes_)) return false;
    if (bytes < bytes_) budget_.give(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  bool grow(std::uint64_t bytes) { return resize(bytes_ + bytes); }
  std::uint64_t bytes() const { return bytes_; }
  // Only of a hold that was made of a budget.
  const ByteBudget& budget() const { return budget_; }

 private:
  bool counts() const { return budget_.count_ != nullptr; }
  void give_back() {
    if (counts()) budget_.give(bytes_);
  }

  ByteBudget budget_;
  std::uint64_t bytes_ = 0;
};

}  // namespace pagoda::server
