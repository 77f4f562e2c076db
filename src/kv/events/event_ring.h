// Events on their way from the thread that owns the cache to one that reads them.
//
//   owner    push, push, ... | publish         a step's events become visible together
//   reader                   |            read
//
// Memory is taken once. Nobody waits: when the reader is so slow that the ring is full, new events
// are dropped and the reader is told so (kLost); a snapshot mends his copy. One owner, one reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/large_array.h"
#include "base/seq_lock.h"
#include "base/token_id.h"
#include "kv/events/event.h"

namespace pagoda::kv {

class EventRing {
 public:
  // Room for at least `events`; 84 bytes each and 4 a token of a block. `tells_private_tokens`: the
  // operator wants tokens of blocks under a salt told, too.
  EventRing(std::uint64_t events, std::uint32_t block_tokens, bool tells_private_tokens = false);

  // The owner's side. `tokens`: none, or those of a block.
  void push(const CacheEvent& event, std::span<const TokenId> tokens = {});
  // False when nothing was pushed since the last time.
  bool publish();
  // Events that can be pushed before some are dropped, at least.
  std::uint64_t room() const {
    return events_.size() - (pushed_ - read_.load(std::memory_order_acquire));
  }
  std::uint64_t events_dropped() const { return sequence_ - pushed_; }

  // The reader's side: calls visit(const CacheEvent&, std::span<const TokenId>) for what was
  // published and not read yet, in order, at most `events_max`. How many there were.
  template <class Visit>
  std::uint64_t read(std::uint64_t events_max, Visit&& visit);

  std::uint32_t block_tokens() const { return block_tokens_; }
  bool tells_private_tokens() const { return tells_private_tokens_; }

 private:
  struct RingState {
    std::uint64_t pushed = 0;
    std::uint64_t sequence = 0;
  };

  std::size_t slot(std::uint64_t position) const { return position & (events_.size() - 1); }
  std::span<const TokenId> tokens(std::size_t slot) const {
    return {tokens_.data() + slot * block_tokens_, token_counts_[slot]};
  }

  std::uint32_t block_tokens_;
  bool tells_private_tokens_;
  LargeArray<CacheEvent> events_;  // [slot]
  LargeArray<std::uint32_t> token_counts_;
  LargeArray<TokenId> tokens_;  // [slot, block_tokens]

  std::uint64_t pushed_ = 0;    // of the owner
  std::uint64_t sequence_ = 0;  // of the owner: pushed and dropped
  std::uint64_t sequence_handed_ = 0;
  SeqLock<RingState> handed_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> read_{0};
  std::uint64_t sequence_expected_ = 0;  // of the reader
};

template <class Visit>
std::uint64_t EventRing::read(std::uint64_t events_max, Visit&& visit) {
  const RingState handed = handed_.read();
  const std::uint64_t first = read_.load(std::memory_order_relaxed);
  std::uint64_t position = first;
  const auto tell_loss = [&](std::uint64_t sequence) {
    if (sequence == sequence_expected_) return;
    visit(CacheEvent{.kind = CacheEventKind::kLost, .sequence = sequence_expected_},
          std::span<const TokenId>());
  };
  for (; position < handed.pushed && position - first < events_max; ++position) {
    const std::size_t at = slot(position);
    tell_loss(events_[at].sequence);
    sequence_expected_ = events_[at].sequence + 1;
    visit(events_[at], tokens(at));
  }
  read_.store(position, std::memory_order_release);
  if (position == handed.pushed) {
    tell_loss(handed.sequence);
    sequence_expected_ = handed.sequence;
  }
  return position - first;
}

}  // namespace pagoda::kv
