// Whole models on a GPU: near the CPU's logits, and the same bits under every condition that must
// not matter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "default_model.h"
#include "kernels/cuda/open_gpu.h"
#include "model/gpu_model.h"

namespace pagoda::gpu_test {
namespace {

using gguf::TensorType;
using kv::memory::Element;
using model::Logits;
using model::Tokens;

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Kullback-Leibler divergence of two rows of logits, in nats.
double divergence(const float* exact, const float* other, std::size_t count) {
  const auto log_sum = [&](const float* x) {
    const double best = *std::max_element(x, x + count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::exp(x[i] - best);
    return best + std::log(sum);
  };
  const double a = log_sum(exact);
  const double b = log_sum(other);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += std::exp(exact[i] - a) * ((exact[i] - a) - (other[i] - b));
  }
  return sum;
}

double mean_divergence(const Logits& exact, const Logits& other, std::size_t vocabulary) {
  double sum = 0;
  const std::size_t rows = exact.size() / vocabulary;
  for (std::size_t r = 0; r < rows; ++r) {
    sum += divergence(exact.data() + r * vocabulary, other.data() + r * vocabulary, vocabulary);
  }
  return sum / static_cast<double>(rows);
}

struct Case {
  const char* name;
  ModelShape shape;
  kv::memory::Elements elements = Element::kBF16;
};
// Bounds of the mean divergence from the CPU in fp32, by what keys are, which cost most.
double divergence_bound(kv::memory::Elements elements) {
  switch (elements.keys) {
    case Element::kInt4:
      return 1e-1;
    case Element::kE5M2:
      return 4e-2;
    case Element::kE4M3:
      return 1e-2;
    default:
      return elements.values == Element::kInt4  ? 2e-2
             : elements.values == elements.keys ? 1e-3
                                                : 1e-2;
  }
}
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Head64Grouped", {.heads = 4, .kv_heads = 2, .head_dim = 64}},
    {"Head64ThreeToOne", {.heads = 9, .kv_heads = 3, .head_dim = 64}},
    {"Head128Multi", {.heads = 2, .kv_heads = 2, .head_dim = 128}},
    {"Head128Grouped", {.heads = 8, .kv_heads = 2, .head_dim = 128}, Element::kF16},
    {"Head256One", {.heads = 4, .kv_heads = 1, .head_dim = 256}},
    {"OneKeyForTwentyFour", {.heads = 24, .kv_heads = 1, .head_dim = 64}, Element::kF16},
    {"Head64Fp8", {.heads = 9, .kv_heads = 3, .head_dim = 64}, Element::kE4M3},
    {"Head128Fp8", {.heads = 8, .kv_heads = 2, .head_dim = 128}, Element::kE4M3},
    {"Head256WindowFp8",
     {.heads = 4, .kv_heads = 1, .head_dim = 256, .window = 100},
     Element::kE4M3},
    {"Head64E5M2", {.heads = 9, .kv_heads = 3, .head_dim = 64}, Element::kE5M2},
    {"Head64Int8", {.heads = 9, .kv_heads = 3, .head_dim = 64}, Element::kInt8},
    {"Head128Int8Window",
     {.heads = 8, .kv_heads = 2, .head_dim = 128, .window = 100},
     Element::kInt8},
    {"Head256Int8", {.heads = 4, .kv_heads = 1, .head_dim = 256}, Element::kInt8},
    {"Head64Int4", {.heads = 4, .kv_heads = 2, .head_dim = 64}, Element::kInt4},
    {"Head128Int4", {.heads = 8, .kv_heads = 2, .head_dim = 128}, Element::kInt4},
    {"Head256Int4Window",
     {.heads = 4, .kv_heads = 1, .head_dim = 256, .window = 100},
     Element::kInt4},
    {"Head64K8V4", {.heads = 9, .kv_heads = 3, .head_dim = 64}, {Element::kInt8, Element::kInt4}},
    {"Head128K8V4", {.heads = 8, .kv_heads = 2, .head_dim = 128}, {Element::kInt8, Element::kInt4}},
    {"Head128Bf16Int8",
     {.heads = 8, .kv_heads = 2, .head_dim = 128},
     {Element::kBF16, Element::kInt8}},
    {"Head64Fp16Fp8", {.heads = 4, .kv_heads = 2, .head_dim = 64}, {Element::kF16, Element::kE4M3}},
    {"Head256Bf16Fp8",
     {.heads = 4, .kv_heads = 1, .head_dim = 256},
     {Element::kBF16, Element::kE4M3}},
    {"Head96Int4", {.heads = 4, .kv_heads = 4, .head_dim = 96}, Element::kInt4},
    {"Head80Int8", {.heads = 4, .kv_heads = 4, .head_dim = 80}, Element::kInt8},
    {"Head192K8V4", {.heads = 4, .kv_heads = 1, .head_dim = 192}, {Element::kInt8, Element::kInt4}},
    {"Head512Fp16Int8",
     {.heads = 2, .kv_heads = 1, .head_dim = 512},
     {Element::kF16, Element::kInt8}},
    {"ScoreCapInt8",
     {.heads = 4, .kv_heads = 2, .head_dim = 128, .window = 70, .score_cap = 2.0f},
     Element::kInt8},
    {"Head16", {.heads = 4, .kv_heads = 2, .head_dim = 16}},
    {"Head80Fp8", {.heads = 4, .kv_heads = 4, .head_dim = 80}, Element::kE4M3},
    {"Head96", {.heads = 4, .kv_heads = 4, .head_dim = 96}},
    {"Head112Window", {.heads = 6, .kv_heads = 2, .head_dim = 112, .window = 100}, Element::kF16},
    {"Head192", {.heads = 4, .kv_heads = 1, .head_dim = 192}},
    {"Head272", {.heads = 2, .kv_heads = 1, .head_dim = 272}},
    {"Head512", {.heads = 2, .kv_heads = 1, .head_dim = 512}},
    {"Sinks", {.heads = 8, .kv_heads = 1, .head_dim = 64, .window = 128, .sinks = true}},
    {"ScoreCap", {.heads = 4, .kv_heads = 2, .head_dim = 128, .window = 70, .score_cap = 2.0f}},
    {"WidthsOfNoWholeChunks", {.width = 272, .hidden_width = 360}},
    {"Window", {.heads = 4, .kv_heads = 2, .head_dim = 64, .window = 100}},
    {"QkNorm", {.heads = 4, .kv_heads = 2, .head_dim = 128, .qk_norm = true}},
    {"Q4_0", {.hidden_width = 512, .type = TensorType::kQ4_0}},
    {"Q4_1", {.hidden_width = 512, .type = TensorType::kQ4_1}},
    {"Q8_0", {.hidden_width = 512, .type = TensorType::kQ8_0}},
    {"Q4_K", {.hidden_width = 512, .type = TensorType::kQ4_K}},
    {"Q6_K", {.hidden_width = 512, .type = TensorType::kQ6_K}},
    {"F16", {.type = TensorType::kF16}, Element::kF16},
    {"AttentionAloneScaled", {.hidden_width = 0, .output_scale = 0.5f}},
    // As in DeepSeek V3.
    {"Experts8Of256InGroups",
     {.layers = 1,
      .router = {.experts = 256,
                 .chosen = 8,
                 .score = kernels::RouterScore::kSigmoid,
                 .is_normalised = true,
                 .weight_scale = 2.5f,
                 .groups = 8,
                 .groups_chosen = 4},
      .expert_width = 64}},
};

class GpuModel : public testing::TestWithParam<Case> {
 protected:
  const SeededModel model_{GetParam().shape};
};

TEST_P(GpuModel, LogitsAreThoseOfTheCpuWithinTheirElement) {
  REQUIRE_GPU();
  const Tokens tokens = model::random_tokens(model_.config(), 300, 3);
  const Logits exact = run_on_cpu(model_.config(), model_.weights(), tokens);
  const Logits got = run_on_gpu(model_.config(), model_.weights(),
                                {.kv_cache_dtype = GetParam().elements}, {tokens})
                         .front();
  // Among many experts some are chosen by less than what rounding to bf16 changes.
  const bool has_experts = model_.config().experts.router.experts > 0;
  const double mean = mean_divergence(exact, got, model_.config().vocabulary);
  std::printf("%s: mean KL %.3g\n", GetParam().name, mean);
  EXPECT_LT(mean, has_experts ? 4e-3 : divergence_bound(GetParam().elements));
}

TEST_P(GpuModel, ChunksBlocksIdsAndGraphsChangeNothing) {
  REQUIRE_GPU();
  const Tokens tokens = model::random_tokens(model_.config(), 600, 4);
  const auto run = [&](GpuConditions conditions) {
    conditions.kv_cache_dtype = GetParam().elements;
    return run_on_gpu(model_.config(), model_.weights(), conditions, {tokens}).front();
  };
  const Logits expected = run({});
  for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
  for (const std::uint32_t chunk : {1u, 7u, 16u, 64u, 250u}) {
    for (const bool graphs : {false, true}) {
      ASSERT_TRUE(
          same_bits(run({.chunk = chunk, .shuffle_seed = chunk, .graphs = graphs}), expected))
          << "chunks of " << chunk << (graphs ? ", graphs" : "");
    }
  }
  for (const std::uint32_t block : {32u, 64u, 128u}) {
    ASSERT_TRUE(same_bits(run({.chunk = 33, .block_tokens = block}), expected))
        << "blocks of " << block;
  }
}

TEST_P(GpuModel, NeighboursChangeNothing) {
  REQUIRE_GPU();
  std::vector<Tokens> sequences;
  for (std::size_t s = 0; s < 128; ++s) {
    sequences.push_back(model::random_tokens(model_.config(), 1 + s * 37 % 330, 90 + s));
  }
  for (const std::size_t count : {2, 5, 16, 40, 128}) {
    const std::vector<Tokens> batch(sequences.begin(),
                                    sequences.begin() + static_cast<std::ptrdiff_t>(count));
    const auto together = run_on_gpu(model_.config(), model_.weights(),
                                     {.chunk = count % 2 == 0 ? 1u : 50u,
                                      .kv_cache_dtype = GetParam().elements,
                                      .shuffle_seed = count},
                                     batch);
    for (const std::size_t s : {std::size_t{0}, count / 2, count - 1}) {
      const auto alone = run_on_gpu(model_.config(), model_.weights(),
                                    {.kv_cache_dtype = GetParam().elements}, {sequences[s]});
      ASSERT_TRUE(same_bits(together[s], alone.front())) << "sequence " << s << " of " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuModel, testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

// Operands stand in chunks of 64 columns. Where a width is no multiple of that, a row's last chunk
// lies where an earlier step of another size had other rows: what was not finite there must be
// gone.
TEST(GpuPoisonedModel, ARowThatIsNotFiniteReachesNoOtherRow) {
  REQUIRE_GPU();
  for (const std::uint32_t width : {256u, 272u}) {
    const SeededModel model({.width = width, .hidden_width = width + 88, .poisoned = true});
    std::vector<Tokens> sequences;
    for (std::size_t s = 0; s < 12; ++s) {
      sequences.push_back(model::random_tokens(model.config(), 40, 60 + s));
      std::replace(sequences[s].begin(), sequences[s].end(), kPoison, TokenId(6));
    }
    const auto expected = run_on_gpu(model.config(), model.weights(), {.chunk = 1}, sequences);
    for (std::size_t s = 0; s < sequences.size(); s += 2) {
      sequences[s].resize(4 + 3 * s);  // each ends at another step: every step has another size
      sequences[s].back() = kPoison;
    }
    for (const std::uint32_t chunk : {1u, 3u, 16u}) {
      const auto got = run_on_gpu(model.config(), model.weights(), {.chunk = chunk}, sequences);
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        const std::size_t sound = sequences[s].size() - (s % 2 == 0 ? 1 : 0);
        const std::size_t values = sound * model.config().vocabulary;
        ASSERT_EQ(std::memcmp(got[s].data(), expected[s].data(), values * sizeof(float)), 0)
            << "width " << width << ", sequence " << s << ", chunks of " << chunk;
        ASSERT_EQ(std::isfinite(got[s].back()), s % 2 == 1);
      }
    }
  }
}

TEST(GpuDefaultModel, LogitsAreThoseOfTheCpuAndChunksChangeNothing) {
  REQUIRE_GPU();
  REQUIRE_DEFAULT_MODEL();
  const model::TestModel model(default_model_path());
  const Tokens tokens = model::random_tokens(model.config(), 200, 5);
  const Logits exact = run_on_cpu(model.config(), model.weights(), tokens);
  const auto run = [&](const GpuConditions& conditions) {
    return run_on_gpu(model.config(), model.weights(), conditions, {tokens}).front();
  };
  const Logits got = run({});
  const double mean = mean_divergence(exact, got, model.config().vocabulary);
  RecordProperty("divergence", std::to_string(mean));
  EXPECT_LT(mean, 1e-3);
  EXPECT_TRUE(same_bits(run({.chunk = 1}), got));
  EXPECT_TRUE(same_bits(run({.chunk = 61, .graphs = false}), got));
}

TEST(GpuDefaultModel, OtherKvFormatsAreNearBf16) {
  REQUIRE_GPU();
  REQUIRE_DEFAULT_MODEL();
  const model::TestModel model(default_model_path());
  const Tokens tokens = model::random_tokens(model.config(), 1000, 6);
  const auto run = [&](kv::memory::Elements elements) {
    return run_on_gpu(model.config(), model.weights(), {.kv_cache_dtype = elements}, {tokens})
        .front();
  };
  const Logits exact = run(Element::kBF16);
  for (const kv::memory::Elements elements : kGpuPairs) {
    const double mean = mean_divergence(exact, run(elements), model.config().vocabulary);
    std::printf("mean KL of %s from bf16: %.3g\n", cache_name(elements).c_str(), mean);
    EXPECT_LT(mean, 2 * divergence_bound(elements)) << cache_name(elements);
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
