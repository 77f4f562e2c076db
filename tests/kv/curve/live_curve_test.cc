// The curve as the running cache feeds it.
#include "kv/curve/live_curve.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "kv/cache_fixture.h"

namespace pagoda::kv {
namespace {

CacheOptions with_curve(std::uint32_t blocks) {
  CacheOptions options = CacheFixture::small(blocks);
  options.live_curve = true;
  return options;
}

const CurvePoint& point_at(const CurveStats& stats, std::uint64_t blocks) {
  for (const CurvePoint& point : stats.lru) {
    if (point.blocks == blocks) return point;
  }
  ADD_FAILURE() << "no point for " << blocks;
  return stats.lru.front();
}

TEST(LiveCurve, CountsTheWholeBlocksThatCouldHaveBeenFound) {
  CacheFixture fixture(with_curve(64));
  fixture.serve(counting(0, 13));  // 12 tokens could be found: 3 blocks
  EXPECT_EQ(fixture.cache().curve().stats().blocks_asked, 3u);
  fixture.serve(counting(0, 12));  // 11: 2 blocks, both there
  EXPECT_EQ(fixture.cache().curve().stats().blocks_asked, 5u);
  EXPECT_NEAR(point_at(fixture.cache().curve().stats(), 64).hit_rate, 2.0 / 5, 1e-9);
  fixture.serve(counting(0, 4));  // none
  fixture.serve(Tokens{});
  EXPECT_EQ(fixture.cache().curve().stats().blocks_asked, 5u);
}

TEST(LiveCurve, FindsWhatWasGenerated) {
  CacheFixture fixture(with_curve(64));
  {
    Sequence sequence = fixture.run(counting(0, 5));
    ASSERT_TRUE(fixture.feed(sequence, counting(5, 11)));
  }
  fixture.serve(counting(0, 17));  // 4 blocks: one was a prompt's, three were generated
  const CurveStats stats = fixture.cache().curve().stats();
  EXPECT_EQ(stats.blocks_asked, 5u);
  EXPECT_NEAR(point_at(stats, 64).hit_rate, 4.0 / 5, 1e-9);
  EXPECT_NEAR(stats.own()->same.value(), 4.0 / 5, 1e-9);
  for (const PolicyRates& rates : stats.by_policy()) {
    EXPECT_NEAR(rates.same.value(), 4.0 / 5, 1e-9) << rates.policy;
  }
}

TEST(LiveCurve, TellsTenantsApartAndSharesWhatIsPublic) {
  CacheFixture fixture(with_curve(64));
  const CacheScope a = fixture.tenant("a", 4);
  const CacheScope b = fixture.tenant("b", 4);
  fixture.serve(a, counting(0, 9));
  fixture.cache().clear();  // so that the curve names all blocks itself
  fixture.serve(b, counting(0, 9));
  EXPECT_NEAR(point_at(fixture.cache().curve().stats(), 64).hit_rate, 1.0 / 4, 1e-9);
  fixture.serve(a, counting(0, 9));
  EXPECT_NEAR(point_at(fixture.cache().curve().stats(), 64).hit_rate, 3.0 / 6, 1e-9);
}

TEST(LiveCurve, DoesNotCountARequestThatAsksForNothing) {
  CacheFixture fixture(with_curve(64));
  CacheScope resumes = fixture.everyone();
  resumes.counts_lookup = false;
  fixture.serve(resumes, counting(0, 13));
  EXPECT_EQ(fixture.cache().curve().stats().blocks_asked, 0u);
  fixture.serve(counting(0, 13));
  EXPECT_NEAR(point_at(fixture.cache().curve().stats(), 64).hit_rate, 1, 1e-9)
      << "what it left is found";
}

TEST(LiveCurve, IsEmptyWhereItIsOffOrNothingIsShared) {
  CacheOptions options = CacheFixture::small(8);
  EXPECT_EQ(Cache(options).curve().stats().blocks, 0u);
  EXPECT_EQ(Cache(options).curve().stats().own(), nullptr);
  options.live_curve = true;
  options.share = false;
  EXPECT_EQ(Cache(options).curve().stats().blocks, 0u);
  options.share = true;
  EXPECT_EQ(Cache(options).curve().stats().blocks, 8u);
  EXPECT_EQ(Cache(options).curve().stats().own()->same, 0);
}

// Sessions below one system prompt, served by a cache that says what others would have given and
// by those others.
struct Served {
  double hit_rate;
  CurveStats stats;
};
struct Sessions {
  std::uint64_t requests;
  std::uint64_t sessions;
  bool live_curve = false;
};
Served serve_sessions(const EvictionPolicy& policy, std::uint32_t blocks,
                      const Sessions& asked_for) {
  const auto [requests, sessions, live_curve] = asked_for;
  CacheOptions options = CacheFixture::small(blocks);
  options.live_curve = live_curve;
  options.policy = &policy;
  Cache cache(options);
  const CacheScope scope = cache.scope("model", "").value();
  std::vector<std::uint32_t> lengths(sessions, 24);
  std::uint64_t found = 0;
  std::uint64_t asked = 0;
  for (std::uint64_t r = 0; r < requests; ++r) {
    const double unit = random_unit(3, 0, r);
    const auto session = static_cast<std::uint64_t>(unit * unit * static_cast<double>(sessions));
    std::uint32_t& length = lengths[session];
    length = std::min(length + 4 * static_cast<std::uint32_t>(random_bits(3, 1, r) % 4), 80u);
    Tokens prompt = counting(0, 12);
    const Tokens own = counting(1000 * (1 + static_cast<std::uint32_t>(session)), length);
    prompt = prompt + own + tokens_of({1});
    const Match match = cache.match(scope, prompt);
    auto opened = cache.open(scope, match, prompt);
    Sequence& sequence = std::get<Opened>(opened).sequence;
    for (const Copy& copy : std::get<Opened>(opened).copies) cache.copied(copy);
    const std::uint64_t end = prompt.size() - 1;  // whole blocks alone: no partial block takes room
    EXPECT_TRUE(std::holds_alternative<std::vector<Copy>>(cache.reserve(sequence, end)));
    const std::uint64_t done = sequence.tokens_computed();
    cache.commit(sequence, std::span<const TokenId>(prompt).subspan(done, end - done));
    found += match.nodes.size();
    asked += end / 4;
  }
  cache.check();
  return {static_cast<double>(found) / static_cast<double>(asked), cache.curve().stats()};
}

TEST(LiveCurve, OfASmallCacheIsWhatEveryPolicyFindsAtEverySize) {
  const CurveStats said = serve_sessions(lru_policy(), 100, {2000, 30, true}).stats;
  for (const PolicyRates& rates : said.by_policy()) {
    const EvictionPolicy& policy = *find_policy(rates.policy);
    const auto found = [&](std::uint32_t blocks) {
      return serve_sessions(policy, blocks, {2000, 30}).hit_rate;
    };
    // The shadows have all blocks; what is left are the buckets of the curve of lru.
    EXPECT_NEAR(rates.half.value(), found(50), 0.003) << rates.policy;
    EXPECT_NEAR(rates.same.value(), found(100), 0.003) << rates.policy;
    EXPECT_NEAR(rates.twice.value(), found(200), 0.003) << rates.policy;
  }
}

// What is said is close; of s3fifo, which was up to eight points off, nothing is said where a
// sample is all there is.
TEST(LiveCurve, OfALargeCacheIsWithinTwoPointsOfEveryPolicyThatASampleShows) {
  const CurveStats said = serve_sessions(lru_policy(), 6000, {12000, 2500, true}).stats;
  for (const PolicyRates& rates : said.by_policy()) {
    const EvictionPolicy& policy = *find_policy(rates.policy);
    EXPECT_EQ(rates.same.has_value(), rates.policy != "s3fifo");
    if (!rates.same) continue;
    EXPECT_NEAR(*rates.same, serve_sessions(policy, 6000, {12000, 2500}).hit_rate, 0.02)
        << rates.policy;
  }
}

// Half of 600 blocks can be followed whole, all of them cannot.
TEST(LiveCurve, TellsAPolicyThatASampleDoesNotShowWhereAllIsFollowed) {
  const CurveStats said = serve_sessions(s3fifo_policy(), 600, {500, 30, true}).stats;
  EXPECT_TRUE(said.own()->half);
  EXPECT_FALSE(said.own()->same);
  EXPECT_FALSE(said.own()->twice);
}

TEST(LiveCurve, OfAnyPolicySaysTheSame) {
  const CurveStats of_lru = serve_sessions(lru_policy(), 100, {1000, 30, true}).stats;
  const CurveStats of_arc = serve_sessions(arc_policy(), 100, {1000, 30, true}).stats;
  EXPECT_EQ(of_lru.policy, "lru");
  EXPECT_EQ(of_arc.policy, "arc");
  EXPECT_EQ(of_arc.own()->policy, "arc");
  for (std::size_t i = 0; i < of_lru.policies; ++i) {
    EXPECT_EQ(of_lru.rates[i].same, of_arc.rates[i].same) << of_lru.rates[i].policy;
  }
}

}  // namespace
}  // namespace pagoda::kv
