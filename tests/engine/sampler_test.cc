#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "engine/sampler_reference.h"
#include "kernels/select.h"

namespace pagoda::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplerScratch scratch_for(std::size_t vocabulary) {
  return {*kernels::available_sets().back(), vocabulary};
}

TokenId sample_one(const SamplingState& state, const std::vector<float>& logits,
                   std::uint64_t position = 0) {
  SamplerScratch scratch = scratch_for(logits.size());
  return sample(logits, state, scratch, position).value().token;
}

// Counts how often each token is drawn over many positions.
std::map<std::uint32_t, int> draw(const SamplingParams& options, const std::vector<float>& logits,
                                  int draws = 20000) {
  const SamplingState state(options, {});
  SamplerScratch scratch = scratch_for(logits.size());
  std::map<std::uint32_t, int> counts;
  for (int position = 0; position < draws; ++position) {
    const auto at = static_cast<std::uint64_t>(position);
    ++counts[sample(logits, state, scratch, at).value().token.value()];
  }
  return counts;
}

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

TEST(Sampler, TemperatureZeroTakesTheBestAndTiesGoToTheLowestId) {
  const SamplingState state({}, {});
  EXPECT_EQ(sample_one(state, kLogits), TokenId(1));
  EXPECT_EQ(sample_one(state, {1, 7, 7, 7}), TokenId(1));
  std::vector<float> wide(1000, 3.0f);
  wide[700] = wide[300] = 4.0f;
  EXPECT_EQ(sample_one(state, wide), TokenId(300));
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

TEST(Sampler, TopPKeepsTheSmallestNucleusThatReachesP) {
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 0.35f}, kLogits, 2000).size(), 1u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 0.65f}, kLogits, 2000).size(), 2u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 0.85f}, kLogits, 2000).size(), 3u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_p = 1e-9f}, kLogits, 2000).size(), 1u);
}

TEST(Sampler, TopPIsAShareOfWhatTopKLeft) {
  // Of the best two, .4 and .3, the first alone is 0.571 of the mass.
  EXPECT_EQ(draw({.temperature = 1.0f, .top_k = 2, .top_p = 0.55f}, kLogits, 2000).size(), 1u);
  EXPECT_EQ(draw({.temperature = 1.0f, .top_k = 2, .top_p = 0.6f}, kLogits, 2000).size(), 2u);
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
  const auto counts = draw({.temperature = 1.0f, .min_p = 0.45f}, kLogits, 2000);
  EXPECT_EQ(counts.size(), 3u);  // 0.2 / 0.4 stays, 0.1 / 0.4 goes
  EXPECT_FALSE(counts.contains(0));
  EXPECT_EQ(draw({.temperature = 1.0f, .min_p = 1.0f}, kLogits, 2000).size(), 1u);
}

// Computes Pearson's statistic of the draws against the probabilities of the allowed tokens, in
// double. With d degrees of freedom the statistic has mean d and variance 2 d.
double chi_square(const std::map<std::uint32_t, int>& counts, const std::map<int, double>& odds,
                  int draws) {
  double total = 0;
  for (const auto& [id, odd] : odds) total += odd;
  double statistic = 0;
  for (const auto& [id, odd] : odds) {
    const double expected = draws * odd / total;
    const auto found = counts.find(static_cast<std::uint32_t>(id));
    const double seen = found == counts.end() ? 0 : found->second;
    statistic += (seen - expected) * (seen - expected) / expected;
  }
  return statistic;
}

TEST(Sampler, SamplesByProbabilityWithinTheNucleusAlsoWhereRoundsAreMany) {
  constexpr int kTokens = 400;
  constexpr int kDraws = 200000;
  std::vector<float> logits;
  for (int id = 0; id < kTokens; ++id) {
    logits.push_back(static_cast<float>(3 * random_unit(7, 0, static_cast<std::uint64_t>(id))));
  }
  std::vector<std::pair<double, int>> sorted;
  double total = 0;
  for (int id = 0; id < kTokens; ++id) {
    sorted.emplace_back(-std::exp(double{logits[static_cast<std::size_t>(id)]}), id);
    total -= sorted.back().first;
  }
  std::sort(sorted.begin(), sorted.end());
  for (const float top_p : {1.0f, 0.9f, 0.5f, 0.1f}) {
    std::map<int, double> odds;
    double mass = 0;
    for (const auto& [negative, id] : sorted) {
      if (mass >= double{top_p} * total) break;
      odds[id] = -negative;
      mass -= negative;
    }
    const auto counts = draw({.temperature = 1.0f, .top_p = top_p, .seed = 11}, logits, kDraws);
    for (const auto& [id, count] : counts) {
      EXPECT_TRUE(odds.contains(static_cast<int>(id))) << id << " is not in the head of " << top_p;
    }
    const auto freedom = static_cast<double>(odds.size() - 1);
    EXPECT_NEAR(chi_square(counts, odds, kDraws), freedom, 4 * std::sqrt(2 * freedom)) << top_p;
  }
}

TEST(Sampler, ASampleIsAFunctionOfSeedSequenceAndPosition) {
  const std::vector<float> flat(1000, 0.0f);
  const auto token = [&](std::uint64_t seed, std::uint32_t number, std::uint64_t position) {
    const SamplingState first({.temperature = 1.0f, .seed = seed, .n = 4}, {});
    return sample_one(first.fork(number), flat, position);
  };
  EXPECT_EQ(token(1, 2, 3), token(1, 2, 3));
  EXPECT_NE(token(1, 2, 3), token(2, 2, 3));
  EXPECT_NE(token(1, 2, 3), token(1, 3, 3));
  EXPECT_NE(token(1, 2, 3), token(1, 2, 4));
}

TEST(Sampler, ASequenceIsThatOfItsOwnSeedAlone) {
  const std::vector<float> flat(1000, 0.0f);
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{7}, kSeedMax, ~std::uint64_t{0}}) {
    const SamplingState first({.temperature = 1.0f, .seed = seed, .n = kSequencesPerRequestMax},
                              {});
    std::set<std::uint64_t> seeds;
    for (std::uint32_t answer = 0; answer < kSequencesPerRequestMax; ++answer) {
      const std::uint64_t own = first.fork(answer).options().seed;
      seeds.insert(own);
      EXPECT_TRUE(answer == 0 ? own == seed : own <= kSeedMax) << own;
      const SamplingState alone({.temperature = 1.0f, .seed = own}, {});
      for (std::uint64_t position = 0; position < 20; ++position) {
        ASSERT_EQ(sample_one(alone, flat, position),
                  sample_one(first.fork(answer), flat, position));
      }
    }
    EXPECT_EQ(seeds.size(), kSequencesPerRequestMax) << "no two answers share a seed";
  }
}

TEST(Sampler, ASeedBeyondWhatIsReportedBecomesOneThatIs) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, kSeedMax}) {
    EXPECT_EQ(reportable_seed(seed), seed);
  }
  for (const std::uint64_t seed : {kSeedMax + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 1}) {
    EXPECT_LE(reportable_seed(seed), kSeedMax);
    EXPECT_EQ(reportable_seed(reportable_seed(seed)), reportable_seed(seed));
  }
  EXPECT_NE(reportable_seed(~std::uint64_t{0}), reportable_seed(~std::uint64_t{0} - 1));
}

TEST(Sampler, TheRequestsSampledBeforeWithTheSameScratchChangeNothing) {
  std::vector<float> logits(3000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(8 * random_unit(5, 0, i));
  }
  const std::vector<float> before = logits;
  const SamplingState state({.temperature = 1.0f, .top_p = 0.7f, .seed = 4}, {});
  const SamplingState others[] = {
      SamplingState({.temperature = 2.0f, .top_k = 900, .logprobs = 50}, {}),
      SamplingState({.repetition_penalty = 3, .logit_bias = {{TokenId(8), 50}}},
                    std::vector{TokenId(2), TokenId(2999)})};
  SamplerScratch shared = scratch_for(logits.size());
  for (std::uint64_t position = 0; position < 50; ++position) {
    const TokenId expected = sample_one(state, logits, position);
    for (const SamplingState& other : others) {
      ASSERT_TRUE(sample(logits, other, shared, position).ok());
    }
    EXPECT_EQ(sample(logits, state, shared, position).value().token, expected);
  }
  EXPECT_EQ(logits, before) << "a row may be sampled again";
}

TEST(Sampler, PenaltiesMoveLogitsAsWorkedByHand) {
  // Tokens 0 and 1 are in the prompt, 1 twice and 2 once in the output. With repetition 2,
  // frequency 0.5 and presence 0.25:
  //   0: 3 / 2 = 1.5             1: -1 * 2 - 2 * 0.5 - 0.25 = -3.25
  //   2: 4 / 2 - 0.5 - 0.25 = 1.25                3: 1.4
  const std::vector<float> logits = {3, -1, 4, 1.4f};
  SamplingState state(
      {.repetition_penalty = 2, .presence_penalty = 0.25f, .frequency_penalty = 0.5f},
      std::vector{TokenId(0), TokenId(1)});
  for (const std::uint32_t id : {1, 2, 1}) state.accept(TokenId(id));
  EXPECT_EQ(sample_one(state, logits), TokenId(0));
  EXPECT_EQ(sample_one(state, {2.7f, -1, 4, 1.4f}), TokenId(3)) << "1.35 is below 1.4";
  EXPECT_EQ(sample_one(state, {2.7f, -1, 4, 1.2f}), TokenId(0)) << "1.35 is above 1.25";
  EXPECT_EQ(sample_one(state, {2.7f, -1, 4.5f, 1.2f}), TokenId(2)) << "1.5 is above 1.35";
  // Token 1 is checked alone: -3.25 must beat the logits beside it.
  EXPECT_EQ(sample_one(state, {-1.7f, -1, -2, -3.3f}), TokenId(1));  // -3.4 -3.25 -4.75 -3.3
  EXPECT_EQ(sample_one(state, {-1.7f, -1, -2, -3.2f}), TokenId(3));
}

TEST(Sampler, PresenceAndFrequencyLookAtTheOutputOnly) {
  SamplingState state({.presence_penalty = 2, .frequency_penalty = 2}, std::vector{TokenId(0)});
  EXPECT_EQ(sample_one(state, {1, 0}), TokenId(0));
  state.accept(TokenId(0));
  EXPECT_EQ(sample_one(state, {1, 0}), TokenId(1));
  EXPECT_EQ(sample_one(state, {4.1f, 0}), TokenId(0)) << "4.1 - 2 - 2 is above 0";
}

TEST(Sampler, BiasComesBeforePenalties) {
  // (-1 + 3) / 4 = 0.5; the other way round it would be -1 * 4 + 3 = -1.
  const SamplingState state({.repetition_penalty = 4, .logit_bias = {{TokenId(1), 3.0f}}},
                            std::vector{TokenId(1)});
  EXPECT_EQ(sample_one(state, {0, -1}), TokenId(1));
}

TEST(Sampler, ABannedTokenNeverComesAndAllBannedIsAnError) {
  const SamplingParams options = {
      .temperature = 100, .logit_bias = {{TokenId(0), -kInfinity}, {TokenId(2), -kInfinity}}};
  const auto counts = draw(options, kLogits, 2000);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_FALSE(counts.contains(0) || counts.contains(2));

  SamplerScratch scratch = scratch_for(1);
  const SamplingState state({.logit_bias = {{TokenId(0), -kInfinity}}}, {});
  const auto outcome = sample(std::vector{1.0f}, state, scratch, 7);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message.find("every token at position 7"), std::string::npos);
}

TEST(Sampler, PenaltiesBeyondTheRangeOfFloatsStayFinite) {
  const SamplingState state({.temperature = 1.0f, .repetition_penalty = 1e-38f},
                            std::vector{TokenId(0), TokenId(1)});
  EXPECT_EQ(sample_one(state, {5000, -1, 2}), TokenId(0));
}

TEST(Sampler, TokensThatEndTheSequenceWaitForMinTokens) {
  const StopCriteria rule({.min_tokens = 2, .stop_token_ids = {TokenId(3)}},
                          std::vector{TokenId(1)});
  SamplingState state({}, {}, rule);
  EXPECT_EQ(sample_one(state, kLogits), TokenId(2)) << "neither 1, the end token, nor 3, a stop";
  state.accept(TokenId(2));
  EXPECT_EQ(sample_one(state, kLogits), TokenId(2));
  state.accept(TokenId(2));
  EXPECT_EQ(sample_one(state, kLogits), TokenId(1));
}

TEST(Sampler, AStateMadeAnewFromPromptAndOutputIsTheSame) {
  const std::vector<TokenId> prompt = {TokenId(9), TokenId(4), TokenId(4)};
  SamplingState lived({.repetition_penalty = 1.5f}, prompt);
  std::vector<TokenId> answer;
  for (const std::uint32_t id : {7, 4, 0, 7, 7}) {
    answer.emplace_back(id);
    lived.accept(answer.back());
  }
  SamplingState again(lived.options(), prompt);
  for (const TokenId id : answer) again.accept(id);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected = {
      {0, 1}, {4, 1}, {7, 3}, {9, 0}};
  for (const SamplingState* const state : {&lived, &again}) {
    ASSERT_EQ(state->seen().entries().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(state->seen().entries()[i].token, TokenId(expected[i].first));
      EXPECT_EQ(state->seen().entries()[i].output_count, expected[i].second);
    }
    EXPECT_EQ(state->generated(), 5u);
  }
}

TEST(Sampler, ALogitThatIsNotFiniteIsAnErrorAlsoWhereItIsBanned) {
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    SamplerScratch scratch = scratch_for(3);
    const SamplingState state({.logit_bias = {{TokenId(1), -kInfinity}}}, {});
    const auto outcome = sample(std::vector<float>{1, bad, 2}, state, scratch, 9);
    ASSERT_FALSE(outcome.ok());
    EXPECT_NE(outcome.error().message.find("token 1 at position 9"), std::string::npos);
  }
}

}  // namespace
}  // namespace pagoda::engine
