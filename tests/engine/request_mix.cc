#include "engine/request_mix.h"

#include <gtest/gtest.h>

#include "engine/list_constraint.h"

namespace pagoda::engine {

std::vector<Request> draw_requests(const model::Config& config, std::size_t count,
                                   std::uint32_t shared_tokens, std::uint32_t new_tokens) {
  const auto text = model::random_tokens(config, shared_tokens, 11);
  const auto constraint = list_constraint(config);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    const std::size_t shared = i % 3 == 0 ? text.size() : text.size() * (i % 5) / 5;
    request.prompt.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(shared));
    const auto own = model::random_tokens(config, 1 + i * 5 % 17, 100 + i);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    request.sampling.top_p = i % 4 == 1 ? 0.8f : 1.0f;
    request.sampling.top_k = i % 4 == 3 ? 20 : 0;
    request.sampling.repetition_penalty = i % 5 == 2 ? 1.2f : 1.0f;
    request.sampling.frequency_penalty = i % 5 == 1 ? 0.7f : 0.0f;
    request.sampling.presence_penalty = i % 5 == 4 ? 0.5f : 0.0f;
    if (i % 5 == 3) request.sampling.logit_bias = {{TokenId(7), 2.5f}, {TokenId(9), -3.0f}};
    request.sampling.seed = 1000 + i;
    request.sampling.n = i % 6 == 5 ? 3 : 1;
    request.sampling.logprobs = 2;
    if (i % 7 == 3) request.sampling.prompt_logprobs = 1;
    request.end.max_tokens = new_tokens - static_cast<std::uint32_t>(i % 4);
    request.end.ignore_eos = true;
    if (i % 4 >= 2 || i % 6 == 5) request.constraint = constraint;
    request.cache_salt = i % 8 == 6 ? "other" : "";
    requests.push_back(request);
  }
  return requests;
}

void expect_same(const std::vector<std::shared_ptr<TestSink>>& got,
                 const std::vector<std::shared_ptr<TestSink>>& alone) {
  for (std::size_t i = 0; i < alone.size(); ++i) {
    ASSERT_TRUE(got[i]->ended()) << i;
    EXPECT_TRUE(same_scores(got[i]->prompt_scores, alone[i]->prompt_scores)) << "request " << i;
    for (std::size_t a = 0; a < alone[i]->answers.size(); ++a) {
      const TestSink::Given& mine = got[i]->answers[a];
      const TestSink::Given& true_one = alone[i]->answers[a];
      EXPECT_EQ(mine.tokens, true_one.tokens) << "request " << i << " answer " << a;
      EXPECT_TRUE(same_scores(mine.scores, true_one.scores)) << "request " << i << " answer " << a;
      EXPECT_EQ(mine.reason, true_one.reason) << "request " << i << " answer " << a;
    }
  }
}

}  // namespace pagoda::engine
