// Embeddings on a GPU: near those of a CPU, and the same bits whatever is cached, how prompts are
// cut into chunks, and what runs beside them.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "engine/backends/gpu_engine_fixture.h"
#include "kernels/cuda/open_gpu.h"

namespace pagoda::gpu_test {
namespace {

using engine::Pooling;
using engine::Request;
using engine::TestSink;
using kv::memory::Element;

const ModelShape kShape = {.heads = 8, .kv_heads = 2, .head_dim = 64};

Request embedding_of(const model::Tokens& prompt, Pooling pooling) {
  Request request;
  request.prompt = prompt;
  request.pooling = pooling;
  request.end.max_tokens = 1;
  return request;
}

template <class Fixture>
std::vector<float> embedded(Fixture& fixture, const Request& request) {
  const auto heard = fixture.submit(request);
  fixture.run();
  EXPECT_EQ(heard->answers[0].message, "");
  return heard->answers[0].record.embedding;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return ab / std::sqrt(aa * bb);
}

class GpuEmbedding : public testing::TestWithParam<Element> {};

INSTANTIATE_TEST_SUITE_P(KvFormats, GpuEmbedding,
                         testing::Values(Element::kBF16, Element::kF16, Element::kE4M3,
                                         Element::kInt8),
                         [](const auto& tested) { return cache_name(tested.param); });

// A GPU rounds activations to bf16: 8 bits of each.
TEST_P(GpuEmbedding, IsNearThatOfACpu) {
  REQUIRE_GPU();
  const SeededModel model(kShape);
  engine::BackendOptions options;
  options.kv_bytes = 8 << 20;
  options.kv_cache_dtype = Element::kF16;
  engine::EngineFixture cpu(model.config(), model.weights(), options, kernels::ref_set());
  GpuEngineFixture gpu(model, {.kv_cache_dtype = GetParam()});
  const model::Tokens prompt = model::random_tokens(model.config(), 90, 7);
  const model::Tokens other = model::random_tokens(model.config(), 90, 8);
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    const std::vector<float> expected = embedded(cpu, embedding_of(prompt, pooling));
    const std::vector<float> got = embedded(gpu, embedding_of(prompt, pooling));
    ASSERT_EQ(got.size(), model.config().width);
    EXPECT_GT(cosine(got, expected), 0.98);
    EXPECT_LT(cosine(got, embedded(gpu, embedding_of(other, pooling))), cosine(got, expected));
    double lengths = 0;
    double differences = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      lengths += std::abs(expected[i]);
      differences += std::abs(got[i] - expected[i]);
    }
    EXPECT_LT(differences, 0.2 * lengths) << "the norm's weights are in it";
  }
}

TEST_P(GpuEmbedding, OfTheMeanIsTheMeanOverAllTokens) {
  REQUIRE_GPU();
  const SeededModel model(kShape);
  GpuEngineFixture gpu(model, {.kv_cache_dtype = GetParam()});
  const model::Tokens prompt = model::random_tokens(model.config(), 40, 9);
  std::vector<double> sum(model.config().width, 0);
  for (std::size_t end = 1; end <= prompt.size(); ++end) {
    const model::Tokens prefix(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(end));
    const std::vector<float> last = embedded(gpu, embedding_of(prefix, Pooling::kLast));
    ASSERT_EQ(last.size(), sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += last[i];
  }
  const std::vector<float> mean = embedded(gpu, embedding_of(prompt, Pooling::kMean));
  ASSERT_EQ(mean.size(), sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(mean[i], static_cast<float>(sum[i] / static_cast<double>(prompt.size()))) << i;
  }
}

// The long prompt has more rows in a step than hidden states come back at once; neighbours that ask
// for log-probabilities of their prompts have their logits computed in groups.
TEST_P(GpuEmbedding, HasTheSameBitsColdWarmInChunksAndInABatch) {
  REQUIRE_GPU();
  const SeededModel model(kShape);
  for (const std::size_t tokens : {13u, 700u}) {
    const model::Tokens prompt = model::random_tokens(model.config(), tokens, 11);
    for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
      GpuEngineFixture cold(model, {.kv_cache_dtype = GetParam()});
      const std::vector<float> alone = embedded(cold, embedding_of(prompt, pooling));
      ASSERT_EQ(alone.size(), model.config().width);
      const auto warm = cold.submit(embedding_of(prompt, pooling));
      cold.run();
      EXPECT_EQ(warm->answers[0].record.embedding, alone);
      EXPECT_EQ(warm->answers[0].record.prompt_tokens_cached,
                pooling == Pooling::kLast ? tokens - 1 : 0u);

      GpuEngineFixture chunked(model, {.batched_tokens = 64, .kv_cache_dtype = GetParam()});
      EXPECT_EQ(embedded(chunked, embedding_of(prompt, pooling)), alone);

      GpuEngineFixture busy(model, {.kv_cache_dtype = GetParam()});
      std::vector<std::shared_ptr<TestSink>> heard;
      for (std::uint64_t i = 0; i < 6; ++i) {
        Request other;
        other.prompt = model::random_tokens(model.config(), 30 + 19 * i, 20 + i);
        other.end.max_tokens = 12;
        other.end.ignore_eos = true;
        if (i % 3 == 0) other.sampling.prompt_logprobs = 1;
        heard.push_back(busy.submit(other));
        if (i == 3) heard.push_back(busy.submit(embedding_of(prompt, pooling)));
      }
      busy.run();
      EXPECT_EQ(heard[4]->answers[0].record.embedding, alone);
    }
  }
}

// Hidden states are normed in the place of what logits come from: answers beside them, and their
// own next token, are those of requests that ask for none.
TEST_P(GpuEmbedding, ChangesNoAnswer) {
  REQUIRE_GPU();
  const SeededModel model(kShape);
  const auto answers = [&](bool with_embeddings) {
    GpuEngineFixture gpu(model, {.kv_cache_dtype = GetParam()});
    std::vector<std::shared_ptr<TestSink>> heard;
    for (std::uint64_t i = 0; i < 8; ++i) {
      Request request;
      request.prompt = model::random_tokens(model.config(), 20 + 31 * i, 40 + i);
      request.end.max_tokens = 16;
      request.end.ignore_eos = true;
      request.sampling.logprobs = 2;
      if (with_embeddings && i % 2 == 0) {
        request.pooling = i % 4 == 0 ? Pooling::kLast : Pooling::kMean;
      }
      heard.push_back(gpu.submit(request));
    }
    gpu.run();
    return heard;
  };
  const auto plain = answers(false);
  const auto with = answers(true);
  for (std::size_t i = 0; i < plain.size(); ++i) expect_same(*with[i], *plain[i], i);
}

}  // namespace
}  // namespace pagoda::gpu_test
