// Memory that requests have together is counted before it is had, and bounded. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace pagoda::server {

class ByteBudget {
 public:
  // A part of the budget, given back when dropped. The budget must outlive it.
  class Hold {
   public:
    Hold() = default;  // of nothing
    explicit Hold(ByteBudget& budget) : budget_(&budget) {}
    Hold(Hold&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Hold& operator=(Hold&& other) noexcept {
      if (this == &other) return *this;
      give_back();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    ~Hold() { give_back(); }

    // False when the budget does not have that much: the part is then what it was.
    bool resize(std::uint64_t bytes) {
      if (budget_ == nullptr) return true;
      if (bytes > bytes_ && !budget_->take(bytes - bytes_)) return false;
      if (bytes < bytes_) budget_->give(bytes_ - bytes);
      bytes_ = bytes;
      return true;
    }
    bool grow(std::uint64_t bytes) { return resize(bytes_ + bytes); }
    std::uint64_t bytes() const { return bytes_; }
    const ByteBudget* budget() const { return budget_; }  // null: of nothing

   private:
    void give_back() {
      if (budget_ != nullptr) budget_->give(bytes_);
    }

    ByteBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  explicit ByteBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Before anyone holds a part of it.
  void set_max(std::uint64_t bytes_max) { bytes_max_ = bytes_max; }
  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t bytes_held() const { return bytes_held_.load(std::memory_order_relaxed); }

 private:
  bool take(std::uint64_t bytes) {
    std::uint64_t held = bytes_held_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_max_ || held > bytes_max_ - bytes) return false;
    } while (!bytes_held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void give(std::uint64_t bytes) { bytes_held_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_held_{0};
};

}  // namespace pagoda::server
