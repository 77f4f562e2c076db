// Counts the memory that parsing takes, and may refuse more.
#pragma once

#include <cstdint>

namespace pagoda::text {

class MemoryAccount {
 public:
  // Call this before allocating; returns false when that many bytes are not left, or when nobody
  // wants the result any more. Taken bytes stay taken for as long as the account counts them. Long
  // work that allocates nothing asks for 0 bytes now and then.
  virtual bool take(std::uint64_t bytes) = 0;

 protected:
  ~MemoryAccount() = default;
};

// Takes bytes from an account in large steps. Without an account there is no limit.
class CountedBytes {
 public:
  explicit CountedBytes(MemoryAccount* account) : account_(account) {}

  bool add(std::uint64_t bytes) {
    bytes_ += bytes;
    if (account_ == nullptr || bytes_ <= taken_) return true;
    const std::uint64_t more = (bytes_ - taken_ + kStepBytes - 1) / kStepBytes * kStepBytes;
    if (!account_->take(more)) return false;
    taken_ += more;
    return true;
  }
  // Returns whether the account still gives anything.
  bool is_open() const { return account_ == nullptr || account_->take(0); }

 private:
  static constexpr std::uint64_t kStepBytes = 4 << 10;

  MemoryAccount* account_;
  std::uint64_t bytes_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace pagoda::text
