// Tests expert routing against its definition in double precision.
#include "kernels/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/random_values.h"

namespace pagoda::kernels {
namespace {

using testing::ElementsAre;

std::vector<ChosenExpert> routed(const Router& router, const std::vector<float>& logits,
                                 const std::vector<float>& bias = {}) {
  RoutingScratch scratch(router);
  std::vector<ChosenExpert> chosen(router.chosen);
  route(router, logits.data(), bias.empty() ? nullptr : bias.data(), scratch, chosen.data());
  return chosen;
}

std::vector<std::uint32_t> experts_of(const std::vector<ChosenExpert>& chosen) {
  std::vector<std::uint32_t> experts;
  for (const ChosenExpert& one : chosen) experts.push_back(one.expert);
  return experts;
}

std::vector<double> exact_scores(const Router& router, const std::vector<float>& logits) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (router.score == RouterScore::kSigmoid) {
    for (double& x : scores) x = 1 / (1 + std::exp(-x));
  } else if (router.score == RouterScore::kSoftmax) {
    double sum = 0;
    for (double& x : scores) sum += x = std::exp(x);
    for (double& x : scores) x /= sum;
  }
  return scores;
}

// The same by sorting, in double precision, without groups.
std::vector<std::pair<std::uint32_t, double>> exact_choice(const Router& router,
                                                           const std::vector<float>& logits,
                                                           const std::vector<float>& bias) {
  const std::vector<double> scores = exact_scores(router, logits);
  std::vector<std::uint32_t> order(router.experts);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return scores[a] + (bias.empty() ? 0 : bias[a]) > scores[b] + (bias.empty() ? 0 : bias[b]);
  });
  order.resize(router.chosen);
  std::vector<std::pair<std::uint32_t, double>> chosen;
  double sum = 0;
  for (const std::uint32_t expert : order) {
    const double weight =
        router.score == RouterScore::kSoftmaxOfChosen ? std::exp(scores[expert]) : scores[expert];
    chosen.emplace_back(expert, weight);
    sum += weight;
  }
  const bool divides = router.is_normalised || router.score == RouterScore::kSoftmaxOfChosen;
  for (auto& [expert, weight] : chosen) {
    weight = (divides ? weight / sum : weight) * double{router.weight_scale};
  }
  return chosen;
}

TEST(Routing, ChoosesAndWeighsAsDefinedForEveryKindOfScore) {
  for (const RouterScore score :
       {RouterScore::kSoftmax, RouterScore::kSigmoid, RouterScore::kSoftmaxOfChosen}) {
    for (const bool is_normalised : {false, true}) {
      for (const std::uint32_t chosen : {1u, 3u, 8u, 32u}) {
        const Router router = {.experts = 32,
                               .chosen = chosen,
                               .score = score,
                               .is_normalised = is_normalised,
                               .weight_scale = 2.5f};
        for (std::uint32_t seed = 0; seed < 20; ++seed) {
          std::vector<float> logits = random_values(32, 100 + seed);
          // Beyond these, floats have too many scores that are equal.
          for (float& logit : logits) logit = std::clamp(5 * logit, -8.0f, 8.0f);
          const std::vector<float> bias =
              seed % 2 == 0 ? std::vector<float>() : random_values(32, 200 + seed);
          const auto ours = routed(router, logits, bias);
          const auto exact = exact_choice(router, logits, bias);
          for (std::size_t i = 0; i < chosen; ++i) {
            ASSERT_EQ(ours[i].expert, exact[i].first) << "rank " << i << ", seed " << seed;
            ASSERT_NEAR(ours[i].weight, exact[i].second, 2e-6 * exact[i].second + 1e-9);
          }
        }
      }
    }
  }
}

TEST(Routing, AmongEqualsTheLowestNumberComesFirst) {
  const Router router = {.experts = 6, .chosen = 3};
  EXPECT_THAT(experts_of(routed(router, {1, 2, 2, 0, 2, 2})), ElementsAre(1, 2, 4));
  EXPECT_THAT(experts_of(routed(router, {0, 0, 0, 0, 0, 0})), ElementsAre(0, 1, 2));
}

TEST(Routing, ABiasChangesWhoIsChosenAndNotByHowMuch) {
  const Router router = {.experts = 3, .chosen = 1, .score = RouterScore::kSigmoid};
  const auto chosen = routed(router, {0, 3, 1}, {0, -1, 0.5f});
  EXPECT_THAT(experts_of(chosen), ElementsAre(2));
  EXPECT_NEAR(chosen[0].weight, 1 / (1 + std::exp(-1.0)), 1e-6);
}

// Groups {0, 1}, {2, 3}, {4, 5}: the sums of two are 3, 4 and 3.5, the highest are 3, 2 and 3.5.
TEST(Routing, OnlyExpertsOfTheBestGroupsAreChosen) {
  const std::vector<float> logits = {3, 0, 2, 2, 3.5f, 0};
  Router router = {.experts = 6,
                   .chosen = 2,
                   .score = RouterScore::kSoftmaxOfChosen,
                   .groups = 3,
                   .groups_chosen = 1,
                   .group_best = 2};
  EXPECT_THAT(experts_of(routed(router, logits)), ElementsAre(2, 3));
  router.group_best = 1;
  EXPECT_THAT(experts_of(routed(router, logits)), ElementsAre(4, 5));
  router.groups_chosen = 2;
  EXPECT_THAT(experts_of(routed(router, logits)), ElementsAre(4, 0));
}

TEST(Routing, WhatIsNotANumberIsChosenLastAndEveryExpertOnce) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Router router = {.experts = 4, .chosen = 4, .score = RouterScore::kSigmoid};
  const auto sigmoids = routed(router, {nan, 1, nan, 2});
  EXPECT_THAT(experts_of(sigmoids), ElementsAre(3, 1, 0, 2));
  EXPECT_TRUE(std::isnan(sigmoids[0].weight));
  router.score = RouterScore::kSoftmax;
  const auto chosen = routed(router, {nan, 1, nan, 2});
  EXPECT_THAT(experts_of(chosen), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(std::isnan(chosen[1].weight));
}

}  // namespace
}  // namespace pagoda::kernels
