// What orders are made of, beside plain lists; and how long blocks live by the priority of
// requests.
#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>

#include "base/random.h"
#include "kv/cache_fixture.h"
#include "kv/evict/eviction_order.h"
#include "kv/evict/ghost_list.h"
#include "kv/evict/order_queues.h"

namespace pagoda::kv {
namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return random_bits(seed_, 0, count_++) % bound; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

TEST(GhostList, RemembersWhatAPlainListRemembers) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Draws draws(seed);
    const auto ghosts_max = static_cast<std::uint32_t>(draws.below(12));
    GhostList ghosts(ghosts_max);
    std::list<std::pair<std::uint64_t, std::uint32_t>> plain;  // oldest first
    const auto known = [&](std::uint64_t identity) {
      return std::find_if(plain.begin(), plain.end(),
                          [&](const auto& ghost) { return ghost.first == identity; });
    };
    for (int i = 0; i < 400; ++i) {
      // Identities that collide in their chain heads as well.
      const std::uint64_t identity = draws.below(4) * std::max(ghosts_max, 1u) + draws.below(6);
      const auto found = known(identity);
      switch (draws.below(4)) {
        case 0:
        case 1: {
          const auto note = static_cast<std::uint32_t>(i);
          ghosts.insert(identity, note);
          if (found != plain.end()) plain.erase(found);
          plain.emplace_back(identity, note);
          if (plain.size() > ghosts_max) plain.pop_front();
          break;
        }
        case 2: {
          const std::optional<std::uint32_t> note = ghosts.take(identity);
          ASSERT_EQ(note.has_value(), found != plain.end());
          if (!note) break;
          ASSERT_EQ(*note, found->second);
          plain.erase(found);
          break;
        }
        default:
          ghosts.erase_oldest();
          if (!plain.empty()) plain.pop_front();
      }
      ghosts.check();
      ASSERT_EQ(ghosts.size(), plain.size());
      for (const auto& [ghost, note] : plain) ASSERT_TRUE(ghosts.contains(ghost));
    }
  }
}

// Three queues; a block's queue and score are what the test says, and one spare is granted to each.
class Scripted : public EvictionOrder {
 public:
  Scripted(std::size_t blocks, bool compares)
      : positions(blocks), spared(blocks), compares_(compares) {}
  std::uint32_t queues() const override { return 3; }
  void entered(BlockId, const Use&) override {}
  std::optional<BlockId> used(BlockId, const Use&) override { return std::nullopt; }
  void left(BlockId) override {}
  QueuePosition position(BlockId block, const BlockStats&) const override {
    return positions[block.value()];
  }
  std::uint32_t first_queue() const override { return 1; }
  bool compares_heads() const override { return compares_; }
  std::uint32_t first_of(std::span<const std::optional<Head>> heads) const override {
    std::optional<std::uint32_t> best;
    for (std::uint32_t i = 0; i < heads.size(); ++i) {
      if (heads[i] && (!best || heads[i]->score > heads[*best]->score)) best = i;
    }
    return *best;
  }
  bool spares(BlockId block) const override { return spared[block.value()]; }
  void spare(BlockId block) override {
    spared[block.value()] = false;
    use(block.value());
  }
  void check() const override {}
  void use(std::uint32_t block) { positions[block].score = -++clock_; }

  std::vector<QueuePosition> positions;
  std::vector<bool> spared;

 private:
  bool compares_;
  std::int64_t clock_ = 0;
};

TEST(OrderQueues, EveryPopIsWhatAScanGives) {
  using Verdict = EvictionQueue::Verdict;
  std::uint64_t popped = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(seed);
    constexpr std::uint32_t kBlocks = 12;
    const bool compares = seed % 2 == 0;
    auto owned = std::make_unique<Scripted>(kBlocks, compares);
    Scripted& order = *owned;
    OrderQueues queues(std::move(owned), kBlocks);
    std::vector<bool> evictable(kBlocks, false);
    const auto judge = [&](BlockId block) {
      return evictable[block.value()] ? Verdict::kTake : Verdict::kForget;
    };
    const auto stats = [](BlockId) { return BlockStats{}; };
    const auto scan = [&]() -> std::optional<std::uint32_t> {
      std::optional<std::uint32_t> best;
      const auto rank = [&](std::uint32_t block) {  // smaller leaves first
        const EvictionOrder::QueuePosition& place = order.positions[block];
        const std::uint32_t turn = compares ? 0 : (place.queue + 2) % 3;
        return std::tuple(turn, -place.score, place.queue, block);
      };
      for (std::uint32_t i = 0; i < kBlocks; ++i) {
        if (evictable[i] && (!best || rank(i) < rank(*best))) best = i;
      }
      return best;
    };
    for (int i = 0; i < 300; ++i) {
      const auto block = static_cast<std::uint32_t>(draws.below(kBlocks));
      EvictionOrder::QueuePosition& place = order.positions[block];
      switch (draws.below(5)) {
        case 0:  // used, and may stand in another queue from now on
          order.use(block);
          if (draws.below(3) == 0) place.queue = static_cast<std::uint32_t>(draws.below(3));
          if (evictable[block]) queues.push(BlockId(block), {});
          break;
        case 1:
          evictable[block] = !evictable[block];
          if (evictable[block]) queues.push(BlockId(block), {});
          break;
        case 2:
          order.spared[block] = true;
          break;
        case 3: {  // looked at and put back: none is spared for it
          const std::optional<std::uint32_t> expected = scan();
          const auto next = queues.take(stats, judge);
          ASSERT_EQ(next ? std::optional(next->value()) : std::nullopt, expected) << seed;
          if (next) queues.push(*next, {});
          break;
        }
        default: {
          std::optional<std::uint32_t> expected = scan();
          while (expected && order.spared[*expected]) {
            // What pop() does, one victim at a time.
            order.spared[*expected] = false;
            order.use(*expected);
            expected = scan();
          }
          const auto victim = queues.pop(stats, judge);
          ASSERT_EQ(victim.has_value(), expected.has_value());
          if (!victim) break;
          ASSERT_EQ(victim->value(), *expected) << seed << " " << i;
          evictable[*expected] = false;
          ++popped;
        }
      }
    }
  }
  EXPECT_GT(popped, 2000u);
}

// Two chains of two blocks, the first used earlier and by a more urgent request.
TEST(TimeToLive, AMoreUrgentRequestsBlocksLiveLongerButNotForEver) {
  for (const std::int64_t later_s : {500, 700}) {  // 600 seconds against 300
    CacheOptions options = CacheFixture::small(4);
    options.policy = &time_to_live_policy();
    CacheFixture fixture(options);
    CacheScope urgent = fixture.everyone();
    urgent.priority = -1;
    fixture.serve(urgent, counting(100, 8));
    fixture.cache().advance_time(later_s * 1'000'000'000 - 300'000'000'000);
    fixture.serve(counting(200, 8));
    fixture.serve(counting(300, 4));
    const bool urgent_is_whole = fixture.matched(counting(100, 9)) == 8;
    EXPECT_EQ(urgent_is_whole, later_s < 600);
    EXPECT_EQ(fixture.matched(counting(200, 9)), urgent_is_whole ? 4u : 8u);
  }
}

TEST(TimeToLive, ALessUrgentUseTakesNothingAwayWhileTheBlockLives) {
  for (const std::int64_t again_s : {100, 2000}) {
    CacheOptions options = CacheFixture::small(4);
    options.policy = &time_to_live_policy();
    CacheFixture fixture(options);
    CacheScope urgent = fixture.everyone();
    urgent.priority = -2;
    CacheScope batch = fixture.everyone();
    batch.priority = 2;
    fixture.serve(urgent, counting(100, 8));
    fixture.cache().advance_time(again_s * 1'000'000'000);
    { const Sequence again = fixture.open(batch, counting(100, 9)); }
    fixture.serve(counting(200, 8));
    fixture.serve(counting(300, 4));
    EXPECT_EQ(fixture.matched(counting(100, 9)), again_s < 1200 ? 8u : 4u);
  }
}

}  // namespace
}  // namespace pagoda::kv
