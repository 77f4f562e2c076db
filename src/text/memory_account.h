// Who counts memory that text takes while it is read, and may say that there is no more.
#pragma once

#include <cstdint>

namespace pagoda::text {

class MemoryAccount {
 public:
  // Asked before the bytes are taken; false when there are not that many. What was taken stays
  // taken for as long as the account counts it.
  virtual bool take(std::uint64_t bytes) = 0;

 protected:
  ~MemoryAccount() = default;
};

// Takes from an account in steps that are worth asking for. Without an account there is no bound.
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

 private:
  static constexpr std::uint64_t kStepBytes = 4 << 10;

  MemoryAccount* account_;
  std::uint64_t bytes_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace pagoda::text
