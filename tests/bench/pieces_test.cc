// What benchmarks are made of: samples, steps, bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/decode_traffic.h"
#include "bench/decode.h"
#include "bench/samples.h"

namespace pagoda::bench {
namespace {

TEST(BenchSamples, AMedianIsTheMiddleOrBetweenTheTwoThere) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({8, 2, 4, 100}), 6);
}

TEST(BenchSamples, APercentileIsTheNearestRank) {
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  EXPECT_EQ(percentile(hundred, 0.5), 50);
  EXPECT_EQ(percentile(hundred, 0.95), 95);
  EXPECT_EQ(percentile(hundred, 0.99), 99);
  EXPECT_EQ(percentile(hundred, 1.0), 100);
  EXPECT_EQ(percentile({15, 20, 35, 40, 50}, 0.3), 20) << "the textbook's example";
  EXPECT_EQ(percentile({3}, 0.01), 3);
}

TEST(BenchDecode, OnlyStepsInWhichAllRunAreCounted) {
  const auto seconds = [](std::vector<std::vector<std::int64_t>> times) {
    for (auto& answer : times) {
      for (std::int64_t& time : answer) time *= 1'000'000'000;
    }
    return shared_step_seconds(times);
  };
  EXPECT_DOUBLE_EQ(seconds({{10, 12, 14, 16}}).value(), 2);
  // The second begins at 30, the first ends at 60: three steps of 10; those of 1 do not count.
  EXPECT_DOUBLE_EQ(seconds({{28, 29, 40, 50, 60}, {30, 41, 51, 61, 62}}).value(), 10);
  EXPECT_EQ(seconds({{1, 2, 3}, {3, 4, 5}}), std::nullopt) << "never together";
}

TEST(BenchTraffic, AWindowBoundsTheKeysOfItsLayersAlone) {
  model::Config config;
  config.layers = 3;
  config.kv_heads = 2;
  config.key_dim = 4;
  config.value_dim = 6;
  config.attention = {{.window = 8}, {.window = 0}, {.window = 8}};
  const std::uint64_t row_bytes = 2 * (4 + 6) * 2;
  const auto element = kv::memory::Element::kBF16;
  EXPECT_EQ(app::kv_bytes_per_token(config, element), 3 * row_bytes);
  EXPECT_EQ(app::kv_bytes_read(config, element, 5), 3 * 5 * row_bytes);
  EXPECT_EQ(app::kv_bytes_read(config, element, 100), (8 + 100 + 8) * row_bytes);
}

TEST(BenchTraffic, EveryMatrixCountsOnceAndTheEmbeddingNever) {
  const auto matrix = [](std::size_t rows, std::size_t row_bytes) {
    kernels::WeightMatrix result;
    result.rows = rows;
    result.row_bytes = row_bytes;
    return result;
  };
  model::Weights weights;
  weights.embedding = matrix(1000, 1000);
  weights.output = matrix(10, 7);
  weights.layers.resize(2);
  for (model::LayerWeights& layer : weights.layers) {
    layer.query.weight = matrix(1, 1);
    layer.key.weight = matrix(2, 1);
    layer.value.weight = matrix(4, 1);
    layer.attention_output.weight = matrix(8, 1);
    layer.feed_forward.gate.weight = matrix(16, 1);
    layer.feed_forward.up.weight = matrix(32, 1);
    layer.feed_forward.down.weight = matrix(64, 1);
  }
  EXPECT_EQ(app::weight_bytes_read(weights, {}), 70 + 2 * 127);
  // Of eight experts of 3 * 100 bytes in the second layer a token reads two, and the router.
  model::ExpertWeights& experts = weights.layers[1].experts;
  experts.router.weight = matrix(8, 10);
  experts.experts.resize(8);
  for (model::FeedForwardWeights& expert : experts.experts) {
    expert.gate.weight = expert.up.weight = expert.down.weight = matrix(10, 10);
  }
  model::Config config;
  config.experts.router = {.experts = 8, .chosen = 2};
  EXPECT_EQ(app::weight_bytes_read(weights, config), 70 + 2 * 127 + 80 + 2 * 300);
}

}  // namespace
}  // namespace pagoda::bench
