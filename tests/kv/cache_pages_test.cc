// Pages for who keeps them outside: held without being used, looked at without being touched.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kv/cache_fixture.h"
#include "kv/cache_snapshot.h"

namespace pagoda::kv {
namespace {

CacheOptions named(std::uint32_t blocks) {
  CacheOptions options = CacheFixture::small(blocks);
  options.hash_blocks = true;
  return options;
}

std::vector<NodeId> nodes_of(CacheFixture& fixture, const Tokens& prompt) {
  return fixture.cache().match(fixture.everyone(), prompt).nodes;
}

BlockId pin(Cache& cache, NodeId node, std::uint32_t group = 0) {
  const BlockId page = cache.pin_page(node, cache.hashes().of(node), group).value();
  cache.check();
  return page;
}

void unpin(Cache& cache, BlockId page) {
  cache.unpin_page(page);
  cache.check();
}

// Room for so many blocks is taken; whatever must go goes.
Sequence press(CacheFixture& fixture, std::uint64_t blocks) {
  Sequence pressure = fixture.open(tokens_of({9999}));
  EXPECT_TRUE(
      std::holds_alternative<std::vector<Copy>>(fixture.cache().reserve(pressure, 4 * blocks)));
  fixture.cache().check();
  return pressure;
}

TEST(PinPage, GivesAWholeBlockUnderItsHashAndNothingElse) {
  CacheOptions options = named(16);
  options.groups = {{0}, {3}};
  CacheFixture fixture(options);
  Cache& cache = fixture.cache();
  fixture.serve(counting(1, 10));
  const auto nodes = nodes_of(fixture, counting(1, 10));
  ASSERT_EQ(nodes.size(), 2u);
  const BlockHash second = cache.hashes().of(nodes[1]);
  EXPECT_EQ(cache.pin_page(nodes[0], second, 0), std::nullopt) << "another name";
  EXPECT_EQ(cache.pin_page(NodeId(0), root_hash(), 0), std::nullopt) << "a root";
  EXPECT_EQ(cache.pin_page(NodeId(1000), second, 0), std::nullopt) << "no node";
  const NodeId leaf = cache.match(fixture.everyone(), counting(1, 11)).partial.value();
  EXPECT_EQ(cache.pin_page(leaf, cache.hashes().of(leaf), 0), std::nullopt) << "a partial block";
  for (const std::uint32_t group : {0u, 1u}) {
    const BlockId page = pin(cache, nodes[1], group);
    EXPECT_EQ(cache.tree().page(nodes[1], group), page);
    EXPECT_EQ(cache.pool().references(page), 1u);
    unpin(cache, page);
  }
  cache.clear();
  EXPECT_EQ(cache.pin_page(nodes[1], second, 0), std::nullopt) << "it left";
}

TEST(PinPage, GivesNoPageOfAGroupThatLetItGo) {
  CacheOptions options = named(8);
  options.groups = {{0}, {3}};
  CacheFixture fixture(options);
  fixture.serve(counting(1, 12));  // six pages; those of the window group went idle first
  const Sequence pressure = press(fixture, 2);
  std::size_t missing = 0;
  for (const NodeId node : list_whole_blocks(fixture.cache())) {
    const bool is_there = fixture.cache().tree().page(node, 1).has_value();
    missing += is_there ? 0 : 1;
    const auto page = fixture.cache().pin_page(node, fixture.cache().hashes().of(node), 1);
    EXPECT_EQ(page.has_value(), is_there);
    if (page) unpin(fixture.cache(), *page);
  }
  EXPECT_GT(missing, 0u);
}

TEST(PinPage, WithoutHashesGivesNothing) {
  CacheFixture fixture(CacheFixture::small(8));
  fixture.serve(counting(1, 9));
  const NodeId node = nodes_of(fixture, counting(1, 9)).front();
  EXPECT_EQ(fixture.cache().pin_page(node, BlockHash{}, 0), std::nullopt);
}

TEST(PinPage, HoldsAPageAndAllBeforeItAsLongAsItIsOut) {
  CacheFixture fixture(named(8));
  Cache& cache = fixture.cache();
  fixture.serve(counting(1, 16));
  const auto nodes = nodes_of(fixture, counting(1, 17));
  const BlockId page = pin(cache, nodes[2]);
  ASSERT_EQ(pin(cache, nodes[2]), page) << "two stores may have it at once";
  EXPECT_EQ(cache.blocks_available(), 5u) << "three of the chain stay";
  cache.clear();
  cache.check();
  EXPECT_EQ(fixture.matched(counting(1, 17)), 12u);
  unpin(cache, page);
  EXPECT_EQ(cache.blocks_available(), 5u);
  unpin(cache, page);
  EXPECT_EQ(cache.blocks_available(), 8u);
  EXPECT_DEATH(cache.unpin_page(page), "once");
  cache.clear();
  EXPECT_EQ(cache.pool().blocks_free(), 8u);
}

TEST(PinPage, OfARunningRequestKeepsNobodyFromWriting) {
  CacheFixture fixture(named(8));
  Sequence sequence = fixture.run(counting(1, 6));
  const BlockId page = pin(fixture.cache(), sequence.nodes().front());
  EXPECT_EQ(fixture.cache().blocks_needed(sequence, 8), 0u) << "its tail is its own";
  ASSERT_TRUE(fixture.feed(sequence, counting(7, 4)));
  EXPECT_EQ(sequence.nodes().size(), 2u);
  fixture.cache().close(sequence);
  unpin(fixture.cache(), page);
  EXPECT_EQ(fixture.matched(counting(1, 11)), 10u);
}

TEST(PinPage, DoesNotMakeABlockLessIdle) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  CacheOptions options = named(4);
  options.eviction_records_max = 8;
  CacheFixture fixture(options);
  Cache& cache = fixture.cache();
  fixture.serve(counting(1, 16));
  cache.advance_time(2 * kSecond);
  unpin(cache, pin(cache, nodes_of(fixture, counting(1, 17)).back()));
  cache.advance_time(3 * kSecond);
  const Sequence pressure = press(fixture, 1);
  const Explanation why = fixture.explain(fixture.everyone(), counting(1, 17));
  ASSERT_TRUE(why.eviction.has_value());
  EXPECT_EQ(why.eviction->idle_ns, 3 * kSecond);
}

// Two caches that serve the same requests. What is done to the second between them must not show:
// a block that left there and not here, or the other way round, is a difference of their trees.
class Twins {
 public:
  explicit Twins(std::uint64_t seed, const EvictionPolicy& policy)
      : seed_(seed), options_(draw_options(policy)), plain_(options_), watched_(options_) {}

  std::uint64_t below(std::uint64_t limit) { return random_bits(seed_, 0, drawn_++) % limit; }
  Cache& watched() { return watched_.cache(); }
  std::uint64_t blocks_evicted() { return plain_.cache().stats().blocks_evicted; }

  // Blocks that the next request takes at most: all its own, the copies it starts with and those
  // that it wakes.
  std::uint64_t blocks_a_request() const { return kBlocksMax * options_.groups.size(); }

  void serve_one() {
    time_ns_ += static_cast<std::int64_t>(below(40)) * 1'000'000'000;
    plain_.cache().advance_time(time_ns_);
    watched_.cache().advance_time(time_ns_);
    if (!running_.empty() && below(3) == 0) {
      const auto at = static_cast<std::ptrdiff_t>(below(running_.size()));
      running_.erase(running_.begin() + at);
      return;
    }
    const auto trunk = static_cast<std::uint32_t>(below(6));
    const auto branch = static_cast<std::uint32_t>(below(4));
    const Tokens prompt = counting(100 * trunk, 4 + static_cast<std::uint32_t>(below(9))) +
                          counting(1000 * branch, static_cast<std::uint32_t>(below(12)));
    const std::string salt = below(3) == 0 ? "a" : "";
    Sequence here = plain_.run(plain_.tenant(salt, 4), prompt);
    Sequence there = watched_.run(watched_.tenant(salt, 4), prompt);
    if (options_.retain_blocks_max > 0 && below(4) == 0) {
      const RetainTerms terms = {.tokens = 8, .until_ns = time_ns_ + 90'000'000'000};
      EXPECT_EQ(plain_.cache().retain(here, terms).ok(),
                watched_.cache().retain(there, terms).ok());
    }
    if (running_.size() < 2 && below(2) == 0) {
      running_.emplace_back(std::move(here), std::move(there));
    }
  }

  void expect_the_same() {
    watched_.cache().check();
    EXPECT_EQ(tree_of(plain_.cache()), tree_of(watched_.cache()));
    EXPECT_EQ(plain_.cache().stats().blocks_evicted, watched_.cache().stats().blocks_evicted);
  }

 private:
  static constexpr std::uint64_t kBlocksMax = 8;

  CacheOptions draw_options(const EvictionPolicy& policy) {
    CacheOptions options = named(30);
    options.policy = &policy;
    if (below(2) == 0) options.groups = {{0}, {6}};
    options.blocks *= static_cast<std::uint32_t>(options.groups.size());
    if (below(3) == 0) options.quota_blocks_private = 8;
    if (below(3) == 0) options.retain_blocks_max = 8;
    return options;
  }

  // Depth, tokens, public, pages of every node.
  using Node = std::tuple<std::uint32_t, std::vector<std::uint32_t>, bool, std::uint32_t>;
  static std::vector<Node> tree_of(const Cache& cache) {
    std::vector<Node> tree;
    for (const NodeSnapshot& node : take_snapshot(cache, SIZE_MAX).tree) {
      tree.emplace_back(node.depth, node.tokens, node.is_public, node.pages);
    }
    return tree;
  }

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::int64_t time_ns_ = 0;
  CacheOptions options_;
  CacheFixture plain_;
  CacheFixture watched_;
  std::vector<std::pair<Sequence, Sequence>> running_;
};

class UnderEveryPolicy : public testing::TestWithParam<const EvictionPolicy*> {};

// Pins begin and end at any time, before, while and after requests use the page, but before room is
// needed: what is out then cannot go, as it must be.
TEST_P(UnderEveryPolicy, PinningNeverChangesWhichBlockLeavesNext) {
  std::uint64_t evicted = 0;
  std::uint64_t pinned_in_all = 0;
  for (std::uint64_t seed = 0; seed < 15 && !HasFailure(); ++seed) {
    Twins twins(seed, *GetParam());
    Cache& cache = twins.watched();
    std::vector<BlockId> pinned;
    const auto unpin_one = [&] {
      const auto at = static_cast<std::ptrdiff_t>(twins.below(pinned.size()));
      cache.unpin_page(pinned[static_cast<std::size_t>(at)]);
      pinned.erase(pinned.begin() + at);
    };
    for (int step = 0; step < 80 && !HasFailure(); ++step) {
      const std::vector<NodeId> whole = list_whole_blocks(cache);
      for (std::uint64_t i = twins.below(6); i-- > 0 && !whole.empty();) {
        const NodeId node = whole[twins.below(whole.size())];
        const auto group = static_cast<std::uint32_t>(twins.below(cache.tree().groups()));
        const auto page = cache.pin_page(node, cache.hashes().of(node), group);
        if (page) pinned.push_back(*page);
        pinned_in_all += page ? 1 : 0;
      }
      while (!pinned.empty() &&
             (cache.pool().blocks_free() < twins.blocks_a_request() || twins.below(4) == 0)) {
        unpin_one();
      }
      twins.serve_one();
      twins.expect_the_same();
    }
    while (!pinned.empty()) unpin_one();
    evicted += twins.blocks_evicted();
  }
  EXPECT_GT(evicted, 1000u);
  EXPECT_GT(pinned_in_all, 1000u);
}

TEST_P(UnderEveryPolicy, LookingAtWhatLeavesNextChangesNothing) {
  std::uint64_t evicted = 0;
  std::uint64_t seen = 0;
  for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    Twins twins(seed, *GetParam());
    for (int step = 0; step < 80 && !HasFailure(); ++step) {
      seen += twins.watched().eviction_candidates(twins.below(40)).size();
      twins.serve_one();
      twins.expect_the_same();
    }
    evicted += twins.blocks_evicted();
  }
  EXPECT_GT(evicted, 1000u);
  EXPECT_GT(seen, 1000u);
}

// Chains of whole blocks, some of them used again, leave one by one.
TEST_P(UnderEveryPolicy, WhatLeavesNextIsTheFirstThatLeaves) {
  std::uint64_t right = 0;
  std::uint64_t left = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CacheOptions options = named(32);
    options.policy = GetParam();
    CacheFixture fixture(options);
    Cache& cache = fixture.cache();
    for (std::uint64_t i = 0; i < 30; ++i) {
      const std::uint64_t bits = random_bits(seed, 1, i);
      const auto trunk = static_cast<std::uint32_t>(bits % 7);
      fixture.serve(counting(100 * trunk, 4 + 4 * static_cast<std::uint32_t>(bits / 8 % 4)));
    }
    for (std::uint64_t taken = cache.pool().blocks_free() + 1; taken <= 32; ++taken) {
      const std::vector<NodeId> leaving = cache.eviction_candidates(3);
      ASSERT_FALSE(leaving.empty());
      { const Sequence pressure = press(fixture, taken); }
      ++left;
      right += cache.tree().is_live(leaving.front()) ? 0 : 1;
    }
  }
  EXPECT_GT(left, 300u);
  // What s3fifo spares goes to another queue on the way, and may change whose turn it is.
  if (GetParam() == &s3fifo_policy()) {
    EXPECT_GT(right, left * 9 / 10);
  } else {
    EXPECT_EQ(right, left);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, UnderEveryPolicy, testing::ValuesIn(eviction_policies()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(EvictionCandidates, NamesEachWholeBlockOnceSoonestFirst) {
  CacheOptions options = named(64);
  options.groups = {{0}, {0}};
  CacheFixture fixture(options);
  for (const std::uint32_t first : {100u, 200u, 300u}) fixture.serve(counting(first, 8));
  fixture.serve(counting(400, 3));  // a partial block
  Sequence held = fixture.run(counting(200, 9));
  const NodeId oldest = nodes_of(fixture, counting(100, 9)).back();
  const NodeId newest = nodes_of(fixture, counting(300, 9)).back();
  EXPECT_EQ(fixture.cache().eviction_candidates(10), (std::vector<NodeId>{oldest, newest}));
  EXPECT_EQ(fixture.cache().eviction_candidates(1), std::vector<NodeId>{oldest});
  EXPECT_TRUE(fixture.cache().eviction_candidates(0).empty());
}

TEST(EvictionCandidates, CountsWhatIsOverItsQuotaOnce) {
  CacheOptions options = named(32);
  options.quota_blocks_private = 2;
  CacheFixture fixture(options);
  fixture.serve(counting(1, 4));
  for (const std::uint32_t first : {100u, 200u, 300u}) {
    fixture.serve(fixture.tenant("a"), counting(first, 4));
  }
  const std::vector<NodeId> leaving = fixture.cache().eviction_candidates(8);
  ASSERT_EQ(leaving.size(), 4u);
  EXPECT_EQ(leaving.back(), nodes_of(fixture, counting(1, 5)).front()) << "used first, leaves last";
  fixture.cache().check();
}

TEST(WholeBlocks, AreThoseWithPagesUsedLastFirst) {
  CacheFixture fixture(named(32));
  fixture.serve(counting(100, 8));
  fixture.serve(counting(200, 10));
  fixture.serve(counting(300, 3));
  fixture.serve(counting(100, 5));
  const Sequence held = fixture.run(counting(400, 9));
  const auto again = nodes_of(fixture, counting(100, 9));
  const auto once = nodes_of(fixture, counting(200, 9));
  const std::vector<NodeId> expected = {held.nodes()[0], held.nodes()[1], again[0],
                                        once[0],         once[1],         again[1]};
  EXPECT_EQ(list_whole_blocks(fixture.cache()), expected);
  const BlockId page = pin(fixture.cache(), again[1]);
  EXPECT_EQ(list_whole_blocks(fixture.cache()), expected) << "being copied out is not a use";
  unpin(fixture.cache(), page);
  EXPECT_EQ(list_whole_blocks(fixture.cache()), expected);
}

}  // namespace
}  // namespace pagoda::kv
