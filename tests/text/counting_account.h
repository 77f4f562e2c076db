// A memory account for tests: it grants a fixed number of bytes and counts those taken.
#pragma once

#include <cstdint>

#include "text/memory_account.h"

namespace pagoda::text {

class CountingAccount final : public MemoryAccount {
 public:
  explicit CountingAccount(std::uint64_t most = UINT64_MAX) : most_(most) {}
  bool take(std::uint64_t bytes) override {
    if (bytes > most_ - taken_) return false;
    taken_ += bytes;
    return true;
  }
  std::uint64_t taken() const { return taken_; }

 private:
  std::uint64_t most_;
  std::uint64_t taken_ = 0;
};

}  // namespace pagoda::text
