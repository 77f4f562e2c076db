// Counts the memory that parsing a body takes, while it is parsed, and ends the parsing when the
// server stops.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/assert.h"
#include "server/api_error.h"
#include "server/byte_budget.h"
#include "text/memory_account.h"

namespace pagoda::server {

class ReadingMemory final : public text::MemoryAccount {
 public:
  // Without a budget nothing is counted. Once `stops` is true nothing more is given. Both must
  // outlive it.
  explicit ReadingMemory(ByteBudget* budget, const std::atomic<bool>* stops = nullptr)
      : budget_(budget),
        hold_(budget == nullptr ? ByteBudget::Hold() : ByteBudget::Hold(*budget)),
        stops_(stops) {}

  bool take(std::uint64_t bytes) override {
    is_stopped_ = stops_ != nullptr && stops_->load(std::memory_order_relaxed);
    if (is_stopped_) return false;
    if (hold_.grow(bytes)) return true;
    needed_ = hold_.bytes() + bytes;
    return false;
  }
  // After take() has returned false.
  ApiError refusal() const {
    if (is_stopped_) return server_stops();
    ASSERT(budget_ != nullptr, "nothing is refused without a budget");
    return out_of_request_memory(*budget_, needed_);
  }

 private:
  ByteBudget* budget_;
  ByteBudget::Hold hold_;
  const std::atomic<bool>* stops_;
  bool is_stopped_ = false;
  std::uint64_t needed_ = 0;  // in all, when it was refused
};

}  // namespace pagoda::server
