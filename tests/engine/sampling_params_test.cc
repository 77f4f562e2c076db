#include "engine/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace pagoda::engine {
namespace {

TEST(SamplingParams, OutOfRangeAreNamedWithValueAndRange) {
  const float nan = std::nanf("");
  const std::vector<std::pair<SamplingParams, std::string>> bad = {
      {{.temperature = -0.5f}, "temperature is -0.5, expected 0 to 100"},
      {{.temperature = nan}, "temperature is nan"},
      {{.temperature = INFINITY}, "temperature is inf"},
      {{.top_p = 0.0f}, "top_p is 0, expected above 0, at most 1"},
      {{.top_p = 1.5f}, "top_p is 1.5"},
      {{.top_p = nan}, "top_p is nan"},
      {{.min_p = -1.0f}, "min_p is -1, expected 0 to 1"},
      {{.min_p = nan}, "min_p is nan"},
      {{.repetition_penalty = 0.0f}, "repetition_penalty is 0, expected above 0, finite"},
      {{.repetition_penalty = -1.0f}, "repetition_penalty is -1"},
      {{.repetition_penalty = nan}, "repetition_penalty is nan"},
      {{.repetition_penalty = INFINITY}, "repetition_penalty is inf"},
      {{.presence_penalty = 2.5f}, "presence_penalty is 2.5, expected -2 to 2"},
      {{.presence_penalty = nan}, "presence_penalty is nan"},
      {{.frequency_penalty = -2.5f}, "frequency_penalty is -2.5, expected -2 to 2"},
      {{.frequency_penalty = nan}, "frequency_penalty is nan"},
      {{.logit_bias = {{TokenId(1), 1}, {TokenId(50), 1}}},
       "logit_bias names token 50, expected below the vocabulary of 50"},
      {{.logit_bias = {{TokenId(1), 101}}}, "logit_bias of token 1 is 101, expected -100 to 100"},
      {{.logit_bias = {{TokenId(1), INFINITY}}}, "logit_bias of token 1 is inf"},
      {{.logit_bias = {{TokenId(1), nan}}}, "logit_bias of token 1 is nan"},
      {{.n = 0}, "n is 0, expected 1 to 128"},
      {{.n = 129}, "n is 129, expected 1 to 128"},
      {{.logprobs = 51}, "logprobs is 51, expected at most the vocabulary of 50"},
      {{.prompt_logprobs = 51}, "prompt_logprobs is 51, expected at most the vocabulary of 50"},
  };
  for (const auto& [options, message] : bad) {
    const Status status = check_sampling(options, 50);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_EQ(status.error().message.find(message), 0u) << status.error().message;
  }
}

TEST(SamplingParams, AtTheEdgesOfTheirRangesAreFine) {
  EXPECT_TRUE(check_sampling({}, 50).ok());
  EXPECT_TRUE(check_sampling({.temperature = 100,
                              .top_k = 5000,
                              .top_p = 1,
                              .min_p = 1,
                              .repetition_penalty = 1e-9f,
                              .presence_penalty = -2,
                              .frequency_penalty = 2,
                              .logit_bias = {{TokenId(49), -INFINITY}, {TokenId(0), 100}},
                              .n = 128,
                              .logprobs = 50,
                              .prompt_logprobs = 0},
                             50)
                  .ok());
}

}  // namespace
}  // namespace pagoda::engine
