#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace pagoda::engine {
namespace {

// How often each token is drawn over many positions.
std::map<std::uint32_t, int> draw(const SamplingOptions& options, const std::vector<float>& logits,
                                  int draws = 20000) {
  Sampler sampler(options);
  std::map<std::uint32_t, int> counts;
  for (int position = 0; position < draws; ++position) {
    ++counts[sampler.sample(logits, static_cast<std::uint64_t>(position)).value().value()];
  }
  return counts;
}

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

TEST(Sampler, TemperatureZeroTakesTheBestAndTiesGoToTheLowestId) {
  Sampler sampler({});
  EXPECT_EQ(sampler.sample(kLogits, 0).value(), TokenId(1));
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 7, 7, 7}, 5).value(), TokenId(1));
}

TEST(Sampler, DrawsByProbability) {
  const auto counts = draw({.temperature = 1.0f, .seed = 1}, kLogits);
  EXPECT_NEAR(counts.at(0), 2000, 200);
  EXPECT_NEAR(counts.at(1), 8000, 350);
  EXPECT_NEAR(counts.at(2), 4000, 280);
  EXPECT_NEAR(counts.at(3), 6000, 320);
}

TEST(Sampler, TemperatureSharpensByDividingLogits) {
  // At 0.5 probabilities are squared and renormalised: .01 .16 .04 .09 over .30.
  const auto counts = draw({.temperature = 0.5f, .seed = 2}, kLogits);
  EXPECT_NEAR(counts.at(1), 20000 * 16 / 30, 350);
  EXPECT_NEAR(counts.at(0), 20000 * 1 / 30, 130);
}

TEST(Sampler, TopKKeepsTheKBest) {
  const auto counts = draw({.temperature = 1.0f, .top_k = 2, .seed = 3}, kLogits);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 20000 * 4 / 7, 350);
  EXPECT_TRUE(counts.contains(3));
}

TEST(Sampler, TopPKeepsTheShortestHeadThatReachesP) {
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 0.35f}, kLogits, 2000).size(), 1u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 0.65f}, kLogits, 2000).size(), 2u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 0.85f}, kLogits, 2000).size(), 3u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 1e-9f}, kLogits, 2000).size(), 1u);
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
  const auto counts = draw({.temperature = 1.0f, .min_p = 0.45f}, kLogits, 2000);
  EXPECT_EQ(counts.size(), 3u);  // 0.2 / 0.4 stays, 0.1 / 0.4 goes
  EXPECT_FALSE(counts.contains(0));
  EXPECT_EQ(draw({.temperature = 1.0f, .min_p = 1.0f}, kLogits, 2000).size(), 1u);
}

TEST(Sampler, ADrawIsAFunctionOfSeedSampleAndPosition) {
  const std::vector<float> flat(1000, 0.0f);
  const auto token = [&](std::uint64_t seed, std::uint64_t sample, std::uint64_t position) {
    Sampler sampler({.temperature = 1.0f, .seed = seed, .sample = sample});
    return sampler.sample(flat, position).value();
  };
  EXPECT_EQ(token(1, 2, 3), token(1, 2, 3));
  EXPECT_NE(token(1, 2, 3), token(2, 2, 3));
  EXPECT_NE(token(1, 2, 3), token(1, 3, 3));
  EXPECT_NE(token(1, 2, 3), token(1, 2, 4));
}

TEST(Sampler, ALogitThatIsNotFiniteIsAnError) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Sampler sampler({});
    const auto outcome = sampler.sample(std::vector<float>{1, bad, 2}, 9);
    ASSERT_FALSE(outcome.ok());
    EXPECT_NE(outcome.error().message.find("token 1 at position 9"), std::string::npos);
  }
}

TEST(Sampler, OptionsOutOfRangeAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<SamplingOptions, const char*>> bad = {
      {{.temperature = -0.1f}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.top_p = 0.0f}, "top_p"},
      {{.top_p = 1.1f}, "top_p"},
      {{.min_p = -1.0f}, "min_p"},
      {{.min_p = nan}, "min_p"},
  };
  for (const auto& [options, name] : bad) {
    const Status status = check_sampling(options);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message.find(name), 0u) << status.error().message;
  }
  EXPECT_TRUE(check_sampling({.temperature = 1.0f, .top_k = 5, .top_p = 0.9f}).ok());
}

}  // namespace
}  // namespace pagoda::engine
