#include "kv/evict/eviction_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "kv/evict/policy.h"

namespace pagoda::kv {
namespace {

using Verdict = EvictionQueue::Verdict;

// Scores and evictability of now, kept apart from the queue, and the scan it must agree with.
struct Candidates {
  std::map<BlockId, std::int64_t> scores;
  std::map<BlockId, bool> evictable;

  std::optional<BlockId> scan() const {
    std::optional<BlockId> best;
    for (const auto& [block, score] : scores) {
      if (!evictable.at(block)) continue;
      if (!best || score > scores.at(*best)) best = block;  // ties: the lowest block, first here
    }
    return best;
  }
};

TEST(EvictionQueue, PopsTheLargestScoreFirstAndTheLowestBlockAmongEquals) {
  EvictionQueue queue;
  const std::vector<std::int64_t> scores = {5, -3, 9, 5, 9, 0};
  for (std::uint32_t i = 6; i-- > 0;) queue.push(BlockId(i), scores[i]);
  std::vector<std::uint32_t> order;
  const auto score = [&](BlockId block) { return scores[block.value()]; };
  const auto judge = [](BlockId) { return Verdict::kTake; };
  while (const auto block = queue.pop(score, judge)) order.push_back(block->value());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 4, 0, 3, 5, 1}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(EvictionQueue, ABlockThatWasUsedSinceItEnteredSinksToItsPlace) {
  EvictionQueue queue;
  std::vector<std::int64_t> scores = {-1, -2, -3};
  for (std::uint32_t i = 0; i < 3; ++i) queue.push(BlockId(i), scores[i]);
  scores[0] = -10;
  const auto pop = [&] {
    return queue.pop([&](BlockId block) { return scores[block.value()]; },
                     [](BlockId) { return Verdict::kTake; });
  };
  EXPECT_EQ(pop(), BlockId(1));
  EXPECT_EQ(pop(), BlockId(2));
  EXPECT_EQ(pop(), BlockId(0));
  EXPECT_EQ(pop(), std::nullopt);
}

TEST(EvictionQueue, WhatIsForgottenIsGoneUntilPushedAgain) {
  EvictionQueue queue;
  queue.push(BlockId(1), 10);
  queue.push(BlockId(2), 5);
  const auto score = [](BlockId block) { return block == BlockId(1) ? 10 : 5; };
  const auto without_1 = [](BlockId block) {
    return block == BlockId(1) ? Verdict::kForget : Verdict::kTake;
  };
  const auto all = [](BlockId) { return Verdict::kTake; };
  EXPECT_EQ(queue.pop(score, without_1), BlockId(2));
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.pop(score, all), std::nullopt);
  queue.push(BlockId(1), 10);
  EXPECT_EQ(queue.pop(score, all), BlockId(1));
}

// Blocks come, are used again (their score falls), become unevictable, come back: every pop is what
// a scan over all candidates gives.
TEST(EvictionQueue, EveryPopIsWhatAScanGives) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EvictionQueue queue;
    Candidates truth;
    std::map<BlockId, bool> queued;
    std::uint64_t draws = 0;
    const auto random = [&](std::uint64_t bound) { return random_bits(seed, 0, draws++) % bound; };
    for (int step = 0; step < 400; ++step) {
      const BlockId block(static_cast<std::uint32_t>(random(30)));
      const std::uint64_t dice = random(10);
      if (dice < 4) {
        if (!truth.scores.contains(block)) {
          truth.scores[block] = static_cast<std::int64_t>(random(20));  // many ties
        }
        truth.evictable[block] = true;
        if (!queued[block]) queue.push(block, truth.scores[block]);
        queued[block] = true;
      } else if (dice < 7 && truth.scores.contains(block)) {
        truth.scores[block] -= static_cast<std::int64_t>(random(15));
      } else if (dice < 8 && truth.scores.contains(block)) {
        truth.evictable[block] = false;
      } else {
        const std::optional<BlockId> expected = truth.scan();
        const auto popped = queue.pop([&](BlockId b) { return truth.scores.at(b); },
                                      [&](BlockId b) {
                                        if (truth.evictable.at(b)) return Verdict::kTake;
                                        queued[b] = false;
                                        return Verdict::kForget;
                                      });
        ASSERT_EQ(popped, expected) << "seed " << seed << ", step " << step;
        if (popped) {
          truth.scores.erase(*popped);
          truth.evictable.erase(*popped);
          queued[*popped] = false;
        }
      }
      const auto entries = std::count_if(queued.begin(), queued.end(),
                                         [](const auto& entry) { return entry.second; });
      ASSERT_EQ(queue.size(), static_cast<std::size_t>(entries));
    }
  }
}

TEST(Policy, LruScoresByLastUseAndFifoByBirth) {
  const BlockStats old_but_used = {.created = 1, .last_use = 50};
  const BlockStats young_and_idle = {.created = 2, .last_use = 3};
  EXPECT_LT(lru_policy().score(old_but_used), lru_policy().score(young_and_idle));
  EXPECT_GT(fifo_policy().score(old_but_used), fifo_policy().score(young_and_idle));
  EXPECT_EQ(find_policy("lru"), &lru_policy());
  EXPECT_EQ(find_policy("fifo"), &fifo_policy());
  EXPECT_EQ(find_policy("magic"), nullptr);
  for (const EvictionPolicy* const policy : eviction_policies()) {
    EXPECT_EQ(find_policy(policy->name), policy);
    EXPECT_NE(policy->score == nullptr, policy->make_order == nullptr) << policy->name;
  }
}

}  // namespace
}  // namespace pagoda::kv
