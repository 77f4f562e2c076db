// The live curve beside caches that are simulated one by one, the plain way.
#include "kv/curve/hit_rate_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "kv/block_identity.h"

namespace pagoda::kv {
namespace {

using Request = std::vector<std::uint64_t>;  // identities, head first

// An lru cache of so many blocks.
class Lru {
 public:
  explicit Lru(std::uint64_t blocks) : blocks_(blocks) {}

  // Returns how many of the request's blocks were there.
  std::uint64_t serve(const Request& request) {
    const auto hits = std::count_if(request.begin(), request.end(),
                                    [this](std::uint64_t block) { return where_.contains(block); });
    for (std::size_t i = request.size(); i-- > 0;) use(request[i]);
    return static_cast<std::uint64_t>(hits);
  }
  void use(std::uint64_t block) {
    const auto known = where_.find(block);
    if (known != where_.end()) newest_first_.erase(known->second);
    newest_first_.push_front(block);
    where_[block] = newest_first_.begin();
    if (where_.size() <= blocks_) return;
    where_.erase(newest_first_.back());
    newest_first_.pop_back();
  }

 private:
  std::uint64_t blocks_;
  std::list<std::uint64_t> newest_first_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> where_;
};

double lru_rate(const std::vector<Request>& requests, std::uint64_t blocks) {
  Lru cache(blocks);
  std::uint64_t hits = 0;
  std::uint64_t asked = 0;
  for (const Request& request : requests) {
    hits += cache.serve(request);
    asked += request.size();
  }
  return static_cast<double>(hits) / static_cast<double>(asked);
}

// Sessions that go on, below one system prompt; few of them often, many seldom.
std::vector<Request> sessions(std::uint64_t requests, std::uint64_t sessions, std::uint64_t seed) {
  std::vector<Request> made;
  std::vector<std::uint64_t> lengths(sessions, 3);
  for (std::uint64_t r = 0; r < requests; ++r) {
    const double unit = random_unit(seed, 0, r);
    const auto session = static_cast<std::uint64_t>(unit * unit * static_cast<double>(sessions));
    lengths[session] += random_bits(seed, 1, r) % 4;
    Request request;
    std::uint64_t above = seed;
    for (std::uint64_t block = 0; block < lengths[session]; ++block) {
      above = mix_identity(above, block < 2 ? block : (session << 32) + block);
      request.push_back(above);
    }
    made.push_back(request);
  }
  return made;
}

HitRateCurve curve_of(const std::vector<Request>& requests, const HitRateCurveOptions& options) {
  HitRateCurve curve(options);
  for (const Request& request : requests) curve.request(request);
  curve.check();
  return curve;
}

TEST(HitRateCurve, IsExactWhileEveryBlockFitsTheSample) {
  const std::vector<Request> requests = sessions(150, 9, 5);
  for (const std::uint16_t hot_max : std::initializer_list<std::uint16_t>{1, 16, 256}) {
    const HitRateCurve curve = curve_of(requests, {.sampled_max = 1000, .hot_max = hot_max});
    ASSERT_EQ(curve.sampling_rate(), 1);
    // Distances up to 127 have a bucket each.
    for (std::uint64_t blocks = 1; blocks < 128; ++blocks) {
      ASSERT_NEAR(curve.hit_rate(blocks), lru_rate(requests, blocks), 1e-9) << blocks;
    }
  }
}

TEST(HitRateCurve, OfASampleIsWithinTwoPointsOfTheCaches) {
  const std::vector<Request> requests = sessions(6000, 3000, 6);
  const HitRateCurve curve = curve_of(requests, {.sampled_max = 2048, .hot_max = 256});
  ASSERT_LT(curve.sampling_rate(), 0.3);
  for (const std::uint64_t blocks : {300, 600, 1200, 2500, 5000, 10000, 20000}) {
    EXPECT_NEAR(curve.hit_rate(blocks), lru_rate(requests, blocks), 0.02) << blocks;
  }
}

// Half of what is asked for is one block, which most samples do not have: without counting it
// apart, a sample of 1/30 has all of it or none.
TEST(HitRateCurve, OneBlockThatEveryoneAsksForDoesNotSpoilIt) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<Request> requests;
    for (std::uint64_t r = 0; r < 60000; ++r) {
      // 4,000 others come in turn, 30,000 requests long; then 4,000 others.
      const std::uint64_t other = r % 4000 + r / 30000 * 4000;
      requests.push_back({mix_identity(seed, 0), mix_identity(seed, 1 + other)});
    }
    const HitRateCurve curve = curve_of(requests, {.sampled_max = 256, .hot_max = 64});
    ASSERT_LT(curve.sampling_rate(), 0.1);
    EXPECT_NEAR(curve.hit_rate(2000), 0.5, 0.02) << seed;
    EXPECT_NEAR(curve.hit_rate(8000), 0.5 + 0.5 * 26 / 30, 0.02) << seed;
  }
}

TEST(HitRateCurve, BlocksThatNobodyAskedForTakeRoomAndCanBeFound) {
  HitRateCurve curve({.sampled_max = 64, .hot_max = 16});
  curve.request(Request{1});
  curve.use(2);
  curve.use(3);
  curve.request(Request{3, 1});
  EXPECT_EQ(curve.blocks_asked(), 3u);
  EXPECT_NEAR(curve.hit_rate(1), 1.0 / 3, 1e-9);
  EXPECT_NEAR(curve.hit_rate(2), 1.0 / 3, 1e-9);
  EXPECT_NEAR(curve.hit_rate(3), 2.0 / 3, 1e-9);
}

TEST(HitRateCurve, AgreesWithItselfWhileBlocksHeatAndCool) {
  HitRateCurve curve({.sampled_max = 64, .hot_max = 16});
  for (std::uint64_t step = 0; step < 20000; ++step) {
    // A few favourites, others every 2,000 steps, among many that come once.
    const bool favourite = random_bits(3, 0, step) % 2 == 0;
    const std::uint64_t block =
        favourite ? step / 2000 * 8 + random_bits(3, 1, step) % 8 : (1u << 20) + step;
    curve.request(Request{mix_identity(9, block)});
    if (step % 7 == 0) curve.check();
  }
  EXPECT_LT(curve.sampling_rate(), 0.02);
}

TEST(HitRateCurve, TakesAtMostTwoMebibytesWhateverItSees) {
  HitRateCurve curve;
  for (std::uint64_t block = 0; block < 1'000'000; ++block) {
    curve.request(Request{mix_identity(4, block)});
  }
  curve.check();
  EXPECT_LE(curve.bytes(), std::size_t{2} << 20);
  EXPECT_LT(curve.hit_rate(1u << 30), 0.02);
}

TEST(HitRateCurve, NeverFallsWithSize) {
  const HitRateCurve curve = curve_of(sessions(2000, 900, 8), {.sampled_max = 256, .hot_max = 64});
  EXPECT_EQ(curve.hit_rate(0), 0);
  for (std::uint64_t blocks = 1; blocks < 30000; blocks += 1 + blocks / 50) {
    ASSERT_LE(curve.hit_rate(blocks), curve.hit_rate(blocks + 1 + blocks / 50));
  }
}

TEST(HitRateCurve, WithoutLookupsIsZero) { EXPECT_EQ(HitRateCurve().hit_rate(1000), 0); }

}  // namespace
}  // namespace pagoda::kv
