// Counters that connections keep: connections, replies by endpoint, prompt tokens by who wrote
// them. Any thread adds and reads; the memory is fixed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/api/transfer_fields.h"
#include "server/api/usage.h"
#include "text/origin.h"

namespace pagoda::server {

class ServerMeters {
 public:
  static constexpr std::size_t kEndpointsMax = 64;
  static constexpr std::size_t kStatusClasses = 6;  // [status / 100]

  void count_reply(std::size_t endpoint, int status) {
    add(replies_[endpoint][static_cast<std::size_t>(status / 100)], 1);
  }
  void count_usage(const Usage& usage) {
    for (std::size_t i = 0; i < text::kSourceCount; ++i) {
      add(sources_[i].tokens, usage.by_source()[i].tokens);
      add(sources_[i].cached, usage.by_source()[i].cached);
    }
    add(normalised_tokens_, usage.normalised_tokens());
    add(policy_dropped_tokens_, usage.policy_dropped_tokens());
  }

  // Returns whether it is the first of its kind.
  bool count_transfer(TransferOutcome outcome) {
    Count& count = transfers_[static_cast<std::size_t>(outcome)];
    return count.fetch_add(1, std::memory_order_relaxed) == 0;
  }
  std::uint64_t transfers(TransferOutcome outcome) const {
    return transfers_[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
  }

  void count_connection() { add(connections_, 1); }
  void count_disconnection() { connections_.fetch_sub(1, std::memory_order_release); }
  std::uint64_t connections() const { return connections_.load(std::memory_order_relaxed); }

  std::uint64_t normalised_tokens() const {
    return normalised_tokens_.load(std::memory_order_relaxed);
  }
  std::uint64_t policy_dropped_tokens() const {
    return policy_dropped_tokens_.load(std::memory_order_relaxed);
  }
  std::uint64_t replies(std::size_t endpoint, std::size_t status_class) const {
    return replies_[endpoint][status_class].load(std::memory_order_relaxed);
  }
  Usage::Share source(text::Source source) const {
    const Shares& shares = sources_[static_cast<std::size_t>(source)];
    // Reading in this order never yields more cached tokens than tokens.
    const std::uint64_t cached = shares.cached.load(std::memory_order_acquire);
    return {.tokens = shares.tokens.load(std::memory_order_relaxed), .cached = cached};
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  struct Shares {
    Count tokens{0};
    Count cached{0};
  };

  static void add(Count& count, std::uint64_t amount) {
    count.fetch_add(amount, std::memory_order_release);
  }

  std::array<std::array<Count, kStatusClasses>, kEndpointsMax + 1> replies_{};
  std::array<Shares, text::kSourceCount> sources_{};
  std::array<Count, kTransferOutcomes> transfers_{};
  Count connections_{0};
  Count normalised_tokens_{0};
  Count policy_dropped_tokens_{0};
};

}  // namespace pagoda::server
