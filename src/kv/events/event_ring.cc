#include "kv/events/event_ring.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace pagoda::kv {

EventRing::EventRing(std::uint64_t events, std::uint32_t block_tokens, bool tells_private_tokens)
    : block_tokens_(block_tokens),
      tells_private_tokens_(tells_private_tokens),
      events_(std::bit_ceil(std::max<std::uint64_t>(1, events))),
      token_counts_(events_.size()),
      tokens_(events_.size() * block_tokens) {}

void EventRing::push(const CacheEvent& event, std::span<const TokenId> tokens) {
  ASSERT(tokens.size() <= block_tokens_, "an event is about one block");
  const std::uint64_t sequence = sequence_++;
  if (room() == 0) return;
  const std::size_t at = slot(pushed_++);
  events_[at] = event;
  events_[at].sequence = sequence;
  token_counts_[at] = static_cast<std::uint32_t>(tokens.size());
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(at * block_tokens_));
}

bool EventRing::publish() {
  if (sequence_ == sequence_handed_) return false;
  handed_.write({pushed_, sequence_});
  sequence_handed_ = sequence_;
  return true;
}

}  // namespace pagoda::kv
