// KV policies and layers of several KV formats in whole models on a GPU: near the CPU's logits, and
// the same bits under every condition that must not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>

#include "kernels/cuda/open_gpu.h"
#include "model/gpu_model.h"

namespace pagoda::gpu_test {
namespace {

using kv::memory::AttentionSpec;
using kv::memory::Element;
using model::Logits;
using model::Tokens;

bool same_bits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

// The root mean square of the difference, as a share of that of the logits.
double distance(const Logits& exact, const Logits& other) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(static_cast<double>(exact[i]) - static_cast<double>(other[i]), 2);
    norm += std::pow(static_cast<double>(exact[i]), 2);
  }
  return std::sqrt(error / norm);
}

struct Case {
  const char* name;
  AttentionSpec policy;
  kv::memory::Elements elements = Element::kBF16;
  ModelShape shape = {.heads = 8, .kv_heads = 2, .head_dim = 64};
  double bound = 2e-2;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Window", {.window = 70}},
    {"Streaming", {.window = 90, .sinks = 4}},
    {"SinksOfSeveralBlocks", {.window = 50, .sinks = 40}},
    {"SinksOfTwoSplits", {.window = 60, .sinks = 270}},
    {"WindowOfSplits", {.window = 300, .sinks = 1}},
    {"Head128",
     {.window = 90, .sinks = 4},
     Element::kBF16,
     {.heads = 4, .kv_heads = 2, .head_dim = 128}},
    {"Head256",
     {.window = 90, .sinks = 4},
     Element::kF16,
     {.heads = 4, .kv_heads = 1, .head_dim = 256}},
    {"Head96",
     {.window = 90, .sinks = 4},
     Element::kBF16,
     {.heads = 4, .kv_heads = 2, .head_dim = 96}},
    {"OneKeyForTwentyFour",
     {.window = 90, .sinks = 4},
     Element::kBF16,
     {.heads = 24, .kv_heads = 1}},
    {"LearnedSinks",
     {.window = 90, .sinks = 4},
     Element::kBF16,
     {.heads = 8, .kv_heads = 1, .sinks = true}},
    {"Fp8", {.window = 90, .sinks = 4}, Element::kE4M3, {.heads = 8, .kv_heads = 2}, 2e-1},
    {"Int8", {.window = 90, .sinks = 4}, Element::kInt8, {.heads = 8, .kv_heads = 2}, 4e-2},
    {"Int4", {.window = 90, .sinks = 4}, Element::kInt4, {.heads = 8, .kv_heads = 2}, 5e-1},
    {"K8V4",
     {.window = 90, .sinks = 4},
     {Element::kInt8, Element::kInt4},
     {.heads = 8, .kv_heads = 2},
     3e-1},
};

class GpuPolicies : public testing::TestWithParam<Case> {
 protected:
  Logits run(GpuConditions conditions, const Tokens& tokens) const {
    conditions.kv_cache_dtype = GetParam().elements;
    conditions.policy = GetParam().policy;
    return run_on_gpu(model_.config(), model_.weights(), conditions, {tokens}).front();
  }
  const SeededModel model_{GetParam().shape};
};

TEST_P(GpuPolicies, LogitsAreThoseOfTheCpu) {
  REQUIRE_GPU();
  const Tokens tokens = model::random_tokens(model_.config(), 500, 3);
  const Logits exact = run_on_cpu(model_.config(), model_.weights(), tokens, GetParam().policy);
  const double off = distance(exact, run({.chunk = 100}, tokens));
  std::printf("%s: %.3g\n", GetParam().name, off);
  EXPECT_LT(off, GetParam().bound);
}

TEST_P(GpuPolicies, ChunksBlocksIdsAndGraphsChangeNothing) {
  REQUIRE_GPU();
  const Tokens tokens = model::random_tokens(model_.config(), 600, 4);
  const Logits expected = run({}, tokens);
  for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
  for (const std::uint32_t chunk : {1u, 7u, 64u, 250u}) {
    const GpuConditions conditions = {.chunk = chunk, .shuffle_seed = chunk, .graphs = chunk == 1};
    ASSERT_TRUE(same_bits(run(conditions, tokens).data(), expected.data(), expected.size()))
        << "chunks of " << chunk;
  }
  ASSERT_TRUE(same_bits(run({.chunk = 33, .block_tokens = 64}, tokens).data(), expected.data(),
                        expected.size()));
}

// Positions beyond the context have rotations, and tables leave out what nobody sees.
TEST_P(GpuPolicies, AContextThatIsShorterThanTheTextChangesNothing) {
  REQUIRE_GPU();
  const AttentionSpec policy = GetParam().policy;
  const Tokens tokens = model::random_tokens(model_.config(), 600, 5);
  const Logits expected = run({.chunk = 40}, tokens);
  const std::uint64_t context = policy.window + policy.sinks;
  for (const std::uint32_t chunk : {1u, 40u}) {
    const Logits got = run({.chunk = chunk, .context = context}, tokens);
    ASSERT_TRUE(same_bits(got.data(), expected.data(), expected.size())) << chunk;
  }
}

// Rows that see no gap have the bits of the full context.
TEST_P(GpuPolicies, RowsBeforeTheGapAreThoseOfTheFullContext) {
  REQUIRE_GPU();
  const AttentionSpec policy = GetParam().policy;
  const Tokens tokens = model::random_tokens(model_.config(), 500, 6);
  const Logits bounded = run({.chunk = 90}, tokens);
  const Logits full = run_on_gpu(model_.config(), model_.weights(),
                                 {.chunk = 90, .kv_cache_dtype = GetParam().elements}, {tokens})
                          .front();
  const std::size_t same = std::size_t{policy.window + policy.sinks} * model_.config().vocabulary;
  ASSERT_TRUE(same_bits(bounded.data(), full.data(), same));
  EXPECT_FALSE(same_bits(bounded.data(), full.data(), full.size()));
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuPolicies, testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

// A model with layers of its own windows, latents, two sizes of heads: policies bound the others.
class GpuPolicyModels : public testing::TestWithParam<const char*> {};

TEST_P(GpuPolicyModels, ArePoliciesOfTheCpuAndTheSameInAnyChunk) {
  REQUIRE_GPU();
  const model::TestModel model(model::test_model_path(std::string("arch_") + GetParam() + ".gguf"));
  const AttentionSpec policy = {.window = 40, .sinks = 4};
  const Tokens tokens = model::random_tokens(model.config(), 200, 8);
  const auto run = [&](const GpuConditions& conditions) {
    return run_on_gpu(model.config(), model.weights(), conditions, {tokens}).front();
  };
  const Logits expected = run({.policy = policy});
  const Logits exact = run_on_cpu(model.config(), model.weights(), tokens, policy);
  std::printf("%s: %.3g\n", GetParam(), distance(exact, expected));
  EXPECT_LT(distance(exact, expected), 1e-1);
  for (const std::uint32_t chunk : {1u, 13u, 64u}) {
    const Logits got = run({.chunk = chunk, .policy = policy});
    ASSERT_TRUE(same_bits(got.data(), expected.data(), expected.size())) << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuPolicyModels,
                         testing::Values("deepseek3", "gemma3", "gemma4_shared"),
                         [](const auto& tested) { return std::string(tested.param); });

// Layers that keep bf16 beside those of another format.
TEST(GpuSkippedLayers, ChunksAndBlocksChangeNothing) {
  REQUIRE_GPU();
  const SeededModel model({.layers = 3, .heads = 8, .kv_heads = 2, .head_dim = 64});
  const Tokens tokens = model::random_tokens(model.config(), 400, 9);
  for (const kv::memory::Elements elements : kGpuPairs) {
    model::KvCacheDtype dtype = elements;
    dtype.skip_layers = {1};
    const auto run = [&](GpuConditions conditions) {
      conditions.kv_cache_dtype = dtype;
      return run_on_gpu(model.config(), model.weights(), conditions, {tokens}).front();
    };
    const Logits expected = run({});
    for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
    for (const std::uint32_t chunk : {1u, 50u}) {
      ASSERT_TRUE(same_bits(run({.chunk = chunk}).data(), expected.data(), expected.size()))
          << cache_name(elements) << ", chunks of " << chunk;
    }
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
