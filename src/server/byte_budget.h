// A budget of bytes that requests share: a request reserves memory here before it allocates it.
// Every function may be called by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace pagoda::server {

class ByteBudget {
 public:
  // A Hold is a reserved part of the budget and releases it when destroyed. The budget must outlive
  // it.
  class Hold {
   public:
    Hold() = default;  // holds no bytes
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

    // Returns false, and leaves the hold as it was, when the budget does not have that many bytes.
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

  // `option` is the name of the option that sets the budget, for errors.
  explicit ByteBudget(std::uint64_t bytes_max, std::string option = {})
      : bytes_max_(bytes_max), option_(std::move(option)) {}

  // Call this before the first hold exists.
  void set_max(std::uint64_t bytes_max) { bytes_max_ = bytes_max; }
  std::uint64_t bytes_max() const { return bytes_max_; }
  const std::string& option() const { return option_; }
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
  std::string option_;
  std::atomic<std::uint64_t> bytes_held_{0};
};

}  // namespace pagoda::server
