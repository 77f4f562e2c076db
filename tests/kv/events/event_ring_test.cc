#include "kv/events/event_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace pagoda::kv {
namespace {

CacheEvent event_of(std::uint32_t group) { return {.group = group}; }

struct Seen {
  CacheEventKind kind;
  std::uint64_t sequence;
  std::uint32_t group;
};

std::vector<Seen> read_all(EventRing& ring, std::uint64_t events_max = UINT64_MAX) {
  std::vector<Seen> seen;
  ring.read(events_max, [&](const CacheEvent& event, std::span<const TokenId>) {
    seen.push_back({event.kind, event.sequence, event.group});
  });
  return seen;
}

TEST(EventRing, ShowsEventsWhenTheyArePublished) {
  EventRing ring(8, 4);
  EXPECT_FALSE(ring.publish());
  ring.push(event_of(1));
  ring.push(event_of(2));
  EXPECT_TRUE(read_all(ring).empty());
  EXPECT_TRUE(ring.publish());
  EXPECT_FALSE(ring.publish());
  const std::vector<Seen> first = read_all(ring, 1);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].group, 1u);
  EXPECT_EQ(first[0].sequence, 0u);
  const std::vector<Seen> second = read_all(ring);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].sequence, 1u);
}

TEST(EventRing, KeepsTheTokensOfEachEvent) {
  EventRing ring(4, 3);
  for (std::uint32_t i = 0; i < 10; ++i) {
    std::vector<TokenId> tokens;
    for (std::uint32_t t = 0; t < i % 4; ++t) tokens.emplace_back(10 * i + t);
    ring.push(event_of(i), tokens);
    ring.publish();
    ring.read(1, [&](const CacheEvent& event, std::span<const TokenId> told) {
      EXPECT_EQ(event.group, i);
      EXPECT_TRUE(std::equal(told.begin(), told.end(), tokens.begin(), tokens.end()));
    });
  }
}

TEST(EventRing, TellsThatEventsWereLostBetweenOthers) {
  EventRing ring(4, 1);
  for (std::uint32_t i = 0; i < 6; ++i) ring.push(event_of(i));  // 4 and 5 find no room
  EXPECT_EQ(ring.events_dropped(), 2u);
  ring.publish();
  EXPECT_EQ(read_all(ring, 2).size(), 2u);
  ring.push(event_of(6));
  ring.publish();
  const std::vector<Seen> seen = read_all(ring);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[2].kind, CacheEventKind::kLost);
  EXPECT_EQ(seen[2].sequence, 4u);
  EXPECT_EQ(seen[3].sequence, 6u);
}

// Nothing may come for a long time after a loss.
TEST(EventRing, TellsThatTheLastEventsWereLost) {
  EventRing ring(2, 1);
  for (std::uint32_t i = 0; i < 5; ++i) ring.push(event_of(i));
  ring.publish();
  const std::vector<Seen> seen = read_all(ring);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[2].kind, CacheEventKind::kLost);
  EXPECT_TRUE(read_all(ring).empty()) << "told once";
  ring.push(event_of(5));
  ring.publish();
  EXPECT_EQ(read_all(ring).front().sequence, 5u);
}

TEST(EventRing, TwoThreadsAgreeOnEveryEvent) {
  constexpr std::uint64_t kEvents = 200'000;
  EventRing ring(64, 2);
  std::atomic<bool> ended{false};
  std::thread owner([&] {
    for (std::uint32_t i = 0; i < kEvents; ++i) {
      const TokenId tokens[] = {TokenId(i), TokenId(i / 2)};
      ring.push(event_of(i), tokens);
      if (i % 3 == 0) ring.publish();
    }
    ring.publish();
    ended = true;
  });
  std::uint64_t next = 0;
  std::uint64_t seen = 0;
  bool lost = false;
  const auto read_some = [&] {
    return ring.read(16, [&](const CacheEvent& event, std::span<const TokenId> tokens) {
      if (event.kind == CacheEventKind::kLost) {
        EXPECT_GE(event.sequence, next);  // a hole may be told as it grows
        lost = true;
        return;
      }
      EXPECT_EQ(event.sequence > next, lost) << "a hole is told, and only a hole";
      EXPECT_EQ(event.group, event.sequence);
      EXPECT_EQ(tokens[0].value(), event.sequence);
      EXPECT_EQ(tokens[1].value(), event.sequence / 2);
      next = event.sequence + 1;
      lost = false;
      ++seen;
    });
  };
  while (!ended) read_some();
  owner.join();
  while (read_some() > 0) {
  }
  EXPECT_EQ(seen + ring.events_dropped(), kEvents);
  EXPECT_EQ(next < kEvents, lost);
}

}  // namespace
}  // namespace pagoda::kv
