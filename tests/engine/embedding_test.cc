// Embeddings are hidden states of the model, the same bits whatever is cached and runs beside them.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/engine_fixture.h"
#include "kernels/select.h"

namespace pagoda::engine {
namespace {

BackendOptions embedding_backend() {
  BackendOptions options;
  options.threads = 2;
  options.kv_bytes = 4 << 20;
  options.kv_cache_dtype = kv::memory::Element::kF16;
  options.scheduler.sequences_max = 8;
  options.scheduler.batched_tokens_max = 32;  // prompts are computed in chunks
  return options;
}

Request embedding_of(const std::vector<TokenId>& prompt, Pooling pooling) {
  Request request;
  request.prompt = prompt;
  request.pooling = pooling;
  request.end.max_tokens = 1;
  return request;
}

std::vector<float> embedded(EngineFixture& fixture, const Request& request) {
  const auto heard = fixture.submit(request);
  fixture.run();
  return heard->answers[0].record.embedding;
}

TEST(Embedding, OfTheLastTokenIsWhatItsLogitsAreComputedFrom) {
  const kernels::KernelSet& kernels = kernels::ref_set();
  EngineFixture fixture(stories(), embedding_backend(), kernels);
  const auto prompt = model::random_tokens(stories().config(), 50, 7);
  const std::vector<float> hidden = embedded(fixture, embedding_of(prompt, Pooling::kLast));
  ASSERT_EQ(hidden.size(), stories().config().width);
  const model::Logits logits =
      model::run_sequences(stories(), {.kernels = &kernels}, {prompt}).front();
  const std::size_t vocabulary = stories().config().vocabulary;
  std::vector<float> row(hidden.size());
  for (std::size_t token = 0; token < vocabulary; ++token) {
    kernels.unpack_row(stories().weights().output, token, row.data());
    double expected = 0;
    for (std::size_t i = 0; i < row.size(); ++i) expected += double{row[i]} * double{hidden[i]};
    EXPECT_NEAR(logits[(prompt.size() - 1) * vocabulary + token], expected,
                1e-3 * (1 + std::abs(expected)));
  }
}

TEST(Embedding, OfTheMeanIsTheMeanOverAllTokens) {
  EngineFixture fixture(stories(), embedding_backend(), kernels::ref_set());
  const auto prompt = model::random_tokens(stories().config(), 40, 9);
  std::vector<double> sum(stories().config().width, 0);
  for (std::size_t end = 1; end <= prompt.size(); ++end) {
    const std::vector<TokenId> prefix(prompt.begin(), prompt.begin() + static_cast<long>(end));
    const auto last = embedded(fixture, embedding_of(prefix, Pooling::kLast));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += last[i];
  }
  const auto mean = embedded(fixture, embedding_of(prompt, Pooling::kMean));
  ASSERT_EQ(mean.size(), sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(mean[i], static_cast<float>(sum[i] / static_cast<double>(prompt.size())));
  }
}

TEST(Embedding, HasTheSameBitsColdWarmAndInABatch) {
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    const auto prompt = model::random_tokens(stories().config(), 77, 11);
    EngineFixture cold(stories(), embedding_backend(), *kernels::available_sets().back());
    const auto alone = embedded(cold, embedding_of(prompt, pooling));
    const auto heard = cold.submit(embedding_of(prompt, pooling));
    cold.run();
    EXPECT_EQ(heard->answers[0].record.embedding, alone);
    EXPECT_EQ(heard->answers[0].record.prompt_tokens_cached, pooling == Pooling::kLast ? 76u : 0u);

    EngineFixture busy(stories(), embedding_backend(), *kernels::available_sets().back());
    std::vector<std::shared_ptr<TestSink>> others;
    for (std::uint64_t i = 0; i < 5; ++i) {
      Request other;
      other.prompt = model::random_tokens(stories().config(), 30 + 9 * i, 20 + i);
      other.end.max_tokens = 12;
      other.end.ignore_eos = true;
      others.push_back(busy.submit(other));
    }
    EXPECT_EQ(embedded(busy, embedding_of(prompt, pooling)), alone);
  }
}

TEST(Embedding, IsRefusedWhereTheDeviceGivesNone) {
  RequestLimits limits = {.vocabulary = 100, .context_tokens = 100};
  const Request request = embedding_of({TokenId(1)}, Pooling::kLast);
  EXPECT_EQ(check_request(request, limits, {}).error().message,
            "pooling: this device computes no embeddings");
  limits.hidden_width = 8;
  EXPECT_TRUE(check_request(request, limits, {}).ok());
}

}  // namespace
}  // namespace pagoda::engine
