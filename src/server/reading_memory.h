// Counts the memory that parsing a body takes, while it is parsed.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "server/api_error.h"
#include "server/byte_budget.h"
#include "text/memory_account.h"

namespace pagoda::server {

class ReadingMemory final : public text::MemoryAccount {
 public:
  // Without a budget nothing is counted. The budget must outlive it.
  explicit ReadingMemory(ByteBudget* budget)
      : budget_(budget),
        hold_(budget == nullptr ? ByteBudget::Hold() : ByteBudget::Hold(*budget)) {}

  bool take(std::uint64_t bytes) override {
    if (hold_.grow(bytes)) return true;
    needed_ = hold_.bytes() + bytes;
    return false;
  }
  // After take() has returned false.
  ApiError refusal() const {
    ASSERT(budget_ != nullptr, "nothing is refused without a budget");
    return out_of_request_memory(*budget_, needed_);
  }

 private:
  ByteBudget* budget_;
  ByteBudget::Hold hold_;
  std::uint64_t needed_ = 0;  // in all, when it was refused
};

}  // namespace pagoda::server
