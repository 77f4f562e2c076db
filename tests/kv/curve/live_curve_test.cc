// The curve as the running cache feeds it.
#include "kv/curve/live_curve.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "kv/cache_desk.h"

namespace pagoda::kv {
namespace {

CacheOptions with_curve(std::uint32_t blocks) {
  CacheOptions options = Desk::small(blocks);
  options.live_curve = true;
  return options;
}

const CurvePoint& point_at(const CurvePicture& picture, std::uint64_t blocks) {
  for (const CurvePoint& point : picture.lru) {
    if (point.blocks == blocks) return point;
  }
  ADD_FAILURE() << "no point for " << blocks;
  return picture.lru.front();
}

TEST(LiveCurve, CountsTheWholeBlocksThatCouldHaveBeenFound) {
  Desk desk(with_curve(64));
  desk.serve(counting(0, 13));  // 12 tokens could be found: 3 blocks
  EXPECT_EQ(desk.cache().curve().blocks_asked, 3u);
  desk.serve(counting(0, 12));  // 11: 2 blocks, both there
  EXPECT_EQ(desk.cache().curve().blocks_asked, 5u);
  EXPECT_NEAR(point_at(desk.cache().curve(), 64).hit_rate, 2.0 / 5, 1e-9);
  desk.serve(counting(0, 4));  // none
  desk.serve(Tokens{});
  EXPECT_EQ(desk.cache().curve().blocks_asked, 5u);
}

TEST(LiveCurve, FindsWhatWasGenerated) {
  Desk desk(with_curve(64));
  {
    Sequence sequence = desk.run(counting(0, 5));
    ASSERT_TRUE(desk.feed(sequence, counting(5, 11)));
  }
  desk.serve(counting(0, 17));  // 4 blocks: one was a prompt's, three were generated
  const CurvePicture picture = desk.cache().curve();
  EXPECT_EQ(picture.blocks_asked, 5u);
  EXPECT_NEAR(point_at(picture, 64).hit_rate, 4.0 / 5, 1e-9);
  EXPECT_NEAR(picture.own()->same.value(), 4.0 / 5, 1e-9);
  for (const PolicyRates& rates : picture.by_policy()) {
    EXPECT_NEAR(rates.same.value(), 4.0 / 5, 1e-9) << rates.policy;
  }
}

TEST(LiveCurve, TellsTenantsApartAndSharesWhatIsPublic) {
  Desk desk(with_curve(64));
  const Domain a = desk.tenant("a", 4);
  const Domain b = desk.tenant("b", 4);
  desk.serve(a, counting(0, 9));
  desk.cache().clear();  // so that the curve names all blocks itself
  desk.serve(b, counting(0, 9));
  EXPECT_NEAR(point_at(desk.cache().curve(), 64).hit_rate, 1.0 / 4, 1e-9);
  desk.serve(a, counting(0, 9));
  EXPECT_NEAR(point_at(desk.cache().curve(), 64).hit_rate, 3.0 / 6, 1e-9);
}

TEST(LiveCurve, DoesNotCountARequestThatAsksForNothing) {
  Desk desk(with_curve(64));
  Domain resumes = desk.everyone();
  resumes.asks = false;
  desk.serve(resumes, counting(0, 13));
  EXPECT_EQ(desk.cache().curve().blocks_asked, 0u);
  desk.serve(counting(0, 13));
  EXPECT_NEAR(point_at(desk.cache().curve(), 64).hit_rate, 1, 1e-9) << "what it left is found";
}

TEST(LiveCurve, IsEmptyWhereItIsOffOrNothingIsShared) {
  CacheOptions options = Desk::small(8);
  EXPECT_EQ(Cache(options).curve().blocks, 0u);
  EXPECT_EQ(Cache(options).curve().own(), nullptr);
  options.live_curve = true;
  options.share = false;
  EXPECT_EQ(Cache(options).curve().blocks, 0u);
  options.share = true;
  EXPECT_EQ(Cache(options).curve().blocks, 8u);
  EXPECT_EQ(Cache(options).curve().own()->same, 0);
}

// Sessions below one system prompt, served by a cache that says what others would have given and
// by those others.
struct Served {
  double hit_rate;
  CurvePicture picture;
};
struct Sessions {
  std::uint64_t requests;
  std::uint64_t sessions;
  bool live_curve = false;
};
Served serve_sessions(const EvictionPolicy& policy, std::uint32_t blocks,
                      const Sessions& asked_for) {
  const auto [requests, sessions, live_curve] = asked_for;
  CacheOptions options = Desk::small(blocks);
  options.live_curve = live_curve;
  options.policy = &policy;
  Cache cache(options);
  const Domain domain = cache.domain("model", "").value();
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
    const Match match = cache.match(domain, prompt);
    auto opened = cache.open(domain, match, prompt);
    Sequence& sequence = std::get<Opened>(opened).sequence;
    for (const Copy& copy : std::get<Opened>(opened).copies) cache.copied(copy);
    const std::uint64_t end = prompt.size() - 1;  // whole blocks alone: no open leaf takes room
    EXPECT_TRUE(std::holds_alternative<std::vector<Copy>>(cache.reserve(sequence, end)));
    const std::uint64_t done = sequence.tokens_computed();
    cache.commit(sequence, std::span<const TokenId>(prompt).subspan(done, end - done));
    found += match.nodes.size();
    asked += end / 4;
  }
  cache.check();
  return {static_cast<double>(found) / static_cast<double>(asked), cache.curve()};
}

TEST(LiveCurve, OfASmallCacheIsWhatEveryPolicyFindsAtEverySize) {
  const CurvePicture said = serve_sessions(lru_policy(), 100, {2000, 30, true}).picture;
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
  const CurvePicture said = serve_sessions(lru_policy(), 6000, {12000, 2500, true}).picture;
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
  const CurvePicture said = serve_sessions(s3fifo_policy(), 600, {500, 30, true}).picture;
  EXPECT_TRUE(said.own()->half);
  EXPECT_FALSE(said.own()->same);
  EXPECT_FALSE(said.own()->twice);
}

TEST(LiveCurve, OfAnyPolicySaysTheSame) {
  const CurvePicture of_lru = serve_sessions(lru_policy(), 100, {1000, 30, true}).picture;
  const CurvePicture of_arc = serve_sessions(arc_policy(), 100, {1000, 30, true}).picture;
  EXPECT_EQ(of_lru.policy, "lru");
  EXPECT_EQ(of_arc.policy, "arc");
  EXPECT_EQ(of_arc.own()->policy, "arc");
  for (std::size_t i = 0; i < of_lru.policies; ++i) {
    EXPECT_EQ(of_lru.rates[i].same, of_arc.rates[i].same) << of_lru.rates[i].policy;
  }
}

}  // namespace
}  // namespace pagoda::kv
