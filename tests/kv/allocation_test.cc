// A step of decoding allocates nothing: every operator new of this program is counted.
#include <gtest/gtest.h>

#include <array>

#include "counted_allocations.h"
#include "kv/block_identity.h"
#include "kv/cache_fixture.h"
#include "kv/curve/hit_rate_curve.h"
#include "kv/curve/live_curve.h"

namespace pagoda::kv {
namespace {

struct Decode {
  bool warm;  // the pool is full of what was served before, and room comes from evicting it
  bool hash_blocks;
  bool share;
  std::vector<memory::AttentionSpec> groups;
  const EvictionPolicy* policy = &lru_policy();
  std::uint64_t quota_blocks = 0;
  bool live_curve = false;
  EventRing* events = nullptr;
};

// Four requests take a token each in turn; the first two compute the same text, so that the second
// joins the first.
void expect_no_allocations(const Decode& decode) {
  constexpr std::uint32_t kTokens = 80;
  CacheOptions options =
      CacheFixture::small(static_cast<std::uint32_t>(100 * decode.groups.size()));
  options.hash_blocks = decode.hash_blocks;
  options.share = decode.share;
  options.groups = decode.groups;
  options.policy = decode.policy;
  options.quota_blocks_private = decode.quota_blocks;
  options.quota_blocks_public = decode.quota_blocks;
  options.retain_blocks_max = decode.quota_blocks;
  options.live_curve = decode.live_curve;
  options.eviction_records_max = 50;
  options.events = decode.events;
  CacheFixture fixture(options);
  for (std::uint32_t i = 0; decode.warm && i < 20; ++i) {
    fixture.serve(fixture.tenant("tenant" + std::to_string(i % 3), i % 2 * 4),
                  counting(1000 * i, 30));
  }
  Cache& cache = fixture.cache();
  const std::uint64_t evicted = cache.stats().blocks_evicted;
  std::vector<Sequence> sequences;
  for (std::uint32_t i = 0; i < 4; ++i) {
    sequences.push_back(
        fixture.run(fixture.tenant(i < 2 ? "same" : "", 4), counting(50'000, 5 + i / 2)));
    sequences.back().expect(kTokens);
    (void)cache.retain(sequences.back(), {.tokens = 4, .until_ns = 30, .priority = 1});
  }
  const std::uint64_t joined = cache.stats().blocks_deduplicated;
  const std::uint64_t before = allocations_so_far();
  for (std::uint32_t step = 6; step < kTokens; ++step) {
    cache.advance_time(step);
    for (std::uint32_t i = 0; i < 4; ++i) {
      Sequence& sequence = sequences[i];
      const auto room = cache.reserve(sequence, sequence.tokens_computed() + 1);
      ASSERT_TRUE(std::holds_alternative<std::vector<Copy>>(room));
      const TokenId token(70'000 + step + (i < 2 ? 0 : 1000 * i));
      cache.commit(sequence, {&token, 1});
    }
  }
  EXPECT_EQ(allocations_so_far() - before, 0u);
  cache.check();
  if (!decode.share) return;
  EXPECT_GT(cache.stats().blocks_deduplicated, joined + 10) << "the run was to join";
  EXPECT_EQ(cache.stats().blocks_evicted > evicted + 10, decode.warm) << "and to evict";
}

TEST(Allocations, OfAnythingAreCounted) {
  const std::uint64_t before = allocations_so_far();
  const std::vector<int> some(7);
  // A compiler may leave out an allocation whose address nobody sees.
  asm volatile("" : : "g"(some.data()) : "memory");
  EXPECT_EQ(allocations_so_far() - before, 1u);
}

TEST(Allocations, OfTheCurveAreThoseOfTheStart) {
  HitRateCurve curve({.sampled_max = 64, .hot_max = 16});
  const std::uint64_t before = allocations_so_far();
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::uint64_t asked[] = {mix_identity(1, i % 3), mix_identity(2, i)};
    curve.request(asked);
    curve.use(mix_identity(3, i));
  }
  EXPECT_GT(curve.hit_rate(100), 0.4);
  EXPECT_EQ(allocations_so_far() - before, 0u);
}

// Whatever the cache's size; shadows of a small one have all its blocks.
TEST(Allocations, OfTheLiveCurveAreAtMostTwoMebibytesAtTheStart) {
  for (const std::uint32_t blocks : {1u, 100u, 800u, 100'000u, UINT32_MAX}) {
    const std::uint64_t bytes_before = bytes_allocated_so_far();
    LiveCurve curve({.blocks = blocks, .groups = 1, .block_tokens = 16});
    EXPECT_LE(bytes_allocated_so_far() - bytes_before + sizeof(curve), 2u << 20) << blocks;
    const std::uint64_t before = allocations_so_far();
    std::array<std::uint64_t, 40> asked;
    for (std::uint64_t r = 0; r < 3000; ++r) {
      for (std::uint64_t i = 0; i < asked.size(); ++i) {
        asked[i] = mix_identity(i < 20 ? r % 50 : r, i);
      }
      curve.opened(asked, {}, 0);
      curve.closed(
          asked.size(), [&](std::uint64_t i) { return asked[i]; }, {}, 0, true);
    }
    EXPECT_EQ(allocations_so_far() - before, 0u);
    EXPECT_EQ(curve.blocks_asked(), 3000u * asked.size());
    curve.check();
  }
}

// A request that ends does not, either.
TEST(Allocations, OfClosingWithTheLiveCurveAreNone) {
  CacheOptions options = CacheFixture::small(200);
  options.live_curve = true;
  CacheFixture fixture(options);
  Sequence sequence = fixture.run(counting(0, 400));
  const std::uint64_t before = allocations_so_far();
  fixture.cache().close(sequence);
  EXPECT_EQ(allocations_so_far() - before, 0u);
}

TEST(Allocations, OfDecodingAreNone) {
  for (const bool warm : {false, true}) {
    expect_no_allocations({warm, false, true, {{0}}});
    expect_no_allocations({warm, true, true, {{0}, {9}}});
    expect_no_allocations({warm, true, true, {{9}}});
    expect_no_allocations({warm, false, false, {{0}, {9}}});
    expect_no_allocations({warm, false, true, {{0}, {9}}, &lru_policy(), 10});
    EventRing events(64, 4);  // overflows on the way
    expect_no_allocations({warm, false, true, {{0}, {9}}, &lru_policy(), 0, false, &events});
    for (const EvictionPolicy* const policy : eviction_policies()) {
      expect_no_allocations({warm, false, true, {{0}}, policy, 0});
      expect_no_allocations({warm, false, true, {{0}}, policy, 20});
      expect_no_allocations({warm, false, true, {{0}}, policy, 20, true});
    }
  }
}

}  // namespace
}  // namespace pagoda::kv
