#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "engine/sampler.h"
#include "kernels/select.h"

namespace pagoda::engine {
namespace {

std::vector<float> random_row(std::size_t vocabulary, std::uint64_t seed) {
  std::vector<float> logits(vocabulary);
  for (std::size_t i = 0; i < vocabulary; ++i) {
    logits[i] = std::round(static_cast<float>(400 * random_unit(seed, 0, i))) / 20;  // with ties
  }
  return logits;
}

TEST(Logprobs, AreTheLogSoftmaxOfTheRawLogitsInEverySet) {
  for (const std::size_t vocabulary : {1u, 7u, 256u, 1024u, 1300u, 5003u}) {
    const std::vector<float> logits = random_row(vocabulary, vocabulary);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    std::vector<std::uint32_t> order(vocabulary);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return logits[a] > logits[b]; });
    const auto chosen = static_cast<std::uint32_t>(vocabulary / 2);
    const auto rank = std::find(order.begin(), order.end(), chosen) - order.begin() + 1;
    for (const kernels::KernelSet* const set : kernels::available_sets()) {
      SamplerScratch scratch(*set, vocabulary);
      for (const std::uint32_t wanted : {0u, 1u, 5u, 400u, 6000u}) {
        const Logprobs found = find_logprobs(logits, TokenId(chosen), wanted, scratch, 0).value();
        EXPECT_NEAR(found.chosen.logprob, logits[chosen] - std::log(sum), 2e-6);
        EXPECT_EQ(found.chosen.rank, rank);
        ASSERT_EQ(found.top.size(), std::min<std::size_t>(wanted, vocabulary));
        for (std::size_t i = 0; i < found.top.size(); ++i) {
          EXPECT_EQ(found.top[i].token, TokenId(order[i])) << set->name << " " << wanted;
          EXPECT_EQ(found.top[i].rank, i + 1);
          EXPECT_NEAR(found.top[i].logprob, logits[order[i]] - std::log(sum), 2e-6);
        }
      }
    }
  }
}

TEST(Logprobs, HaveTheSameBitsInEverySet) {
  const std::vector<float> logits = random_row(4001, 3);
  SamplerScratch plain(kernels::ref_set(), logits.size());
  const float expected = find_logprobs(logits, TokenId(9), 0, plain, 0).value().chosen.logprob;
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    SamplerScratch scratch(*set, logits.size());
    EXPECT_EQ(find_logprobs(logits, TokenId(9), 0, scratch, 0).value().chosen.logprob, expected);
  }
}

TEST(Logprobs, OfASampledTokenComeFromBeforePenaltiesAndTemperature) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f),
                                     std::log(0.3f)};
  SamplerScratch scratch(*kernels::available_sets().back(), 4);
  const SamplingState state(
      {.temperature = 0.1f, .top_k = 1, .logit_bias = {{TokenId(0), 50}}, .logprobs = 2}, {});
  const Sampled sampled = sample(logits, state, scratch, 0).value();
  EXPECT_EQ(sampled.token, TokenId(0));
  ASSERT_TRUE(sampled.logprobs.has_value());
  EXPECT_EQ(sampled.logprobs->chosen.token, TokenId(0));
  EXPECT_NEAR(sampled.logprobs->chosen.logprob, std::log(0.1), 1e-6);
  EXPECT_EQ(sampled.logprobs->chosen.rank, 4u);
  ASSERT_EQ(sampled.logprobs->top.size(), 2u);
  EXPECT_EQ(sampled.logprobs->top[0].token, TokenId(1));
  EXPECT_NEAR(sampled.logprobs->top[1].logprob, std::log(0.3), 1e-6);
}

TEST(Logprobs, OfARowThatIsNotFiniteAreAnError) {
  SamplerScratch scratch(*kernels::available_sets().back(), 2);
  EXPECT_FALSE(find_logprobs(std::vector{1.0f, std::nanf("")}, TokenId(0), 1, scratch, 3).ok());
}

}  // namespace
}  // namespace pagoda::engine
