// Requests without a server, and the scores and logits of their prompts.
#include "app/offline_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "app/loaded_model.h"
#include "app/perplexity.h"
#include "app/synthetic_request.h"
#include "base/clock.h"
#include "engine/backends/cpu_backend.h"
#include "kernels/select.h"
#include "test_data.h"

namespace pagoda::app {
namespace {

using testing::HasSubstr;

class RowRecorder final : public engine::LogitsReader {
 public:
  void on_logits(std::uint64_t position, std::span<const float> logits) override {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(rows.emplace(position, std::vector<float>(logits.begin(), logits.end())).second)
        << "each row once";
  }

  std::mutex mutex;
  std::map<std::uint64_t, std::vector<float>> rows;
};

class OfflineBatch : public testing::Test {
 protected:
  OfflineBatch()
      : model_(LoadedModel::load(test_data() + "/models/stories260K.gguf",
                                 *kernels::select_set().value())
                   .value()) {
    engine::BackendOptions options;
    options.threads = 2;
    options.kv_bytes = 2 << 20;
    options.scheduler.sequences_max = 4;
    options.scheduler.batched_tokens_max = 32;  // prompts come in chunks
    backend_ = engine::CpuBackend::create(model_->config(), model_->weights(),
                                          *kernels::select_set().value(), options)
                   .value();
  }

  engine::Request scored(std::uint64_t tokens, std::uint64_t start,
                         std::shared_ptr<engine::LogitsReader> reader = nullptr) const {
    engine::Request request =
        fixed_request(random_prompt(model_->config().vocabulary, tokens, 3), 1);
    request.sampling.prompt_logprobs = 0;
    request.prompt_logprobs_start = start;
    request.prompt_logits = std::move(reader);
    return request;
  }
  Result<std::vector<OfflineReply>> run(std::vector<engine::Request> requests,
                                        const OfflineHooks& hooks = {}) {
    return run_offline(*backend_, std::move(requests), clock_, hooks);
  }

  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<engine::CpuBackend> backend_;
  SteadyClock clock_;
};

TEST_F(OfflineBatch, RepliesAreInTheOrderOfTheirRequests) {
  std::vector<engine::Request> requests;
  for (std::uint32_t i = 0; i < 6; ++i) {
    requests.push_back(
        fixed_request(random_prompt(model_->config().vocabulary, 20 + 9 * i, i), 3 + i));
  }
  const auto alone = run({requests[4]}).value();
  const auto together = run(requests).value();
  ASSERT_EQ(together.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(together[i].tokens.size(), 3 + i);
  EXPECT_EQ(together[4].tokens, alone[0].tokens);
}

TEST_F(OfflineBatch, ScoresFromAPositionOnAreTheLastOfAllScores) {
  const std::vector<float> all = run({scored(100, 0)}).value()[0].prompt_logprobs;
  ASSERT_EQ(all.size(), 99u) << "nothing predicts the first token";
  for (const std::uint64_t start : {1u, 2u, 31u, 32u, 33u, 70u, 99u}) {
    const std::vector<float> some = run({scored(100, start)}).value()[0].prompt_logprobs;
    EXPECT_EQ(some,
              std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(start) - 1, all.end()))
        << start;
  }
}

TEST_F(OfflineBatch, TheReaderGetsTheRowsOfTheScoredTokensAndNoOthers) {
  const auto reader = std::make_shared<RowRecorder>();
  const engine::Request request = scored(100, 40, reader);
  const std::vector<TokenId> prompt = request.prompt;
  const std::vector<float> scores = run({request}).value()[0].prompt_logprobs;
  ASSERT_EQ(reader->rows.size(), 60u);
  for (std::uint64_t position = 40; position < 100; ++position) {
    ASSERT_TRUE(reader->rows.contains(position)) << position;
    const std::vector<float>& row = reader->rows[position];
    ASSERT_EQ(row.size(), model_->config().vocabulary);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit));
    EXPECT_NEAR(row[prompt[position].value()] - std::log(sum), scores[position - 40], 1e-5);
  }
}

TEST_F(OfflineBatch, RefusalsNameTheFieldAndCancellingEnds) {
  const auto beyond = run({scored(100, 100)});
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.error().message,
              HasSubstr("prompt_logprobs_start: is 100, expected less than the prompt's 100"));
  std::uint64_t computed = 0;
  const auto cancelled =
      run({scored(400, 0)}, {.cancelled = [&] { return computed >= 64; },
                             .on_tokens = [&](std::uint64_t tokens) { computed = tokens; }});
  ASSERT_FALSE(cancelled.ok());
  EXPECT_THAT(cancelled.error().message, HasSubstr("interrupted"));
  EXPECT_LT(computed, 200u);
  EXPECT_TRUE(run({scored(50, 0)}).ok()) << "the backend is good for the next";
}

TEST(Perplexity, IsTheExponentialOfTheMeanWithItsStandardError) {
  // Probabilities 1/2 and 1/8: their geometric mean is 1/4.
  const std::vector<float> logprobs = {std::log(0.5f), std::log(0.125f)};
  EXPECT_NEAR(perplexity_of(logprobs).value, 4, 1e-5);
  // Logarithms lie log 2 around their mean; the error is 4 log 2 / sqrt(1).
  EXPECT_NEAR(perplexity_of(logprobs).error, 4 * std::log(2.0), 1e-4);
  EXPECT_EQ(perplexity_of({}).value, 0);
}

}  // namespace
}  // namespace pagoda::app
