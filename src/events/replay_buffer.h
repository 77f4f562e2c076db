// ReplayBuffer keeps the last batches for subscribers that missed some.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace pagoda::events {

class ReplayBuffer {
 public:
  static constexpr std::uint64_t kBytesMax = 64 << 20;

  explicit ReplayBuffer(std::uint64_t batches_max) : batches_max_(batches_max) {}

  struct Batch {
    std::uint64_t sequence;
    std::string payload;
  };
  // Sequence numbers only rise; the oldest batches make room.
  void push(std::uint64_t sequence, std::string payload);

  // Calls visit(const Batch&) for the batches from `sequence` on, in order, while visit returns
  // true.
  template <class Visit>
  void for_each_from(std::uint64_t sequence, Visit&& visit) const {
    for (const Batch& batch : batches_) {
      if (batch.sequence >= sequence && !visit(batch)) return;
    }
  }
  std::size_t batches() const { return batches_.size(); }

 private:
  std::uint64_t batches_max_;
  std::uint64_t bytes_ = 0;
  std::deque<Batch> batches_;
};

}  // namespace pagoda::events
