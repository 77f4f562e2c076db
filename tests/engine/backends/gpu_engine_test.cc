// Whole requests on a GPU: what an answer gets does not depend on who runs beside it, on the cache,
// on preemption or on forks. A request alone on a machine of its own is what all is compared with.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "engine/backends/gpu_engine_fixture.h"
#include "engine/list_constraint.h"
#include "kernels/cuda/open_gpu.h"

namespace pagoda::gpu_test {
namespace {

using engine::Request;
using engine::TestSink;

// Greedy and drawn, with and without log-probabilities, forked, penalised and under a grammar:
// every way a token is chosen.
std::vector<Request> requests_of(const model::Config& config, std::size_t count) {
  const auto constraint = engine::list_constraint(config);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    if (i % 5 == 3) request.constraint = constraint;
    request.prompt = model::random_tokens(config, 5 + i * 61 % 400, 7 + i % 3);
    request.end.max_tokens = 20 + static_cast<std::uint32_t>(i % 5);
    request.sampling.seed = i;
    if (i % 4 == 1) request.sampling.temperature = 0.8f;
    if (i % 3 == 2) request.sampling.top_k = 20;
    if (i % 8 == 5) request.sampling.top_p = 0.7f;
    if (i % 4 == 2) request.sampling.logprobs = 3;
    if (i % 6 == 3) request.sampling.n = 3;
    if (i % 5 == 4) request.sampling.repetition_penalty = 1.2f;
    if (i % 7 == 6) request.sampling.prompt_logprobs = 2;
    requests.push_back(request);
  }
  return requests;
}

class GpuEngine : public testing::TestWithParam<KvChoice> {
 protected:
  static FixtureOptions with_choice(FixtureOptions options = {}) {
    options.kv_cache_dtype = GetParam().elements;
    options.kv_policy = GetParam().policy;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(KvFormats, GpuEngine, testing::ValuesIn(kv_choices()),
                         [](const auto& tested) { return choice_name(tested.param); });

TEST_P(GpuEngine, NeighboursCachePreemptionDraftsAndGraphsChangeNoAnswer) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const SeededModel small({.layers = 1, .heads = 4, .kv_heads = 2, .head_dim = 64});
  const std::vector<Request> requests = requests_of(model.config(), 24);
  std::vector<std::shared_ptr<TestSink>> alone;
  for (const Request& request : requests) {
    GpuEngineFixture gpu(model, with_choice());
    alone.push_back(gpu.submit(request));
    gpu.run();
  }
  // Blocks of the same tokens that were computed twice have the same bytes.
  std::uint64_t joins = 0;
  const auto compare = [&](std::span<const std::byte> mine, std::span<const std::byte> existing) {
    ++joins;
    EXPECT_TRUE(std::ranges::equal(mine, existing)) << "join " << joins;
  };
  speculate::RecordedDrafter drafter = drafter_of(requests, alone, model.config().vocabulary);
  const FixtureOptions all[] = {{},
                                {.batched_tokens = 64},
                                {.graphs = false},
                                {.blocks = 64, .batched_tokens = 128},
                                {.drafter = &drafter},
                                {.graphs = false, .drafter = &drafter},
                                {.blocks = 64, .batched_tokens = 128, .drafter = &drafter},
                                {.draft_model = small},
                                {.blocks = 64, .batched_tokens = 128, .draft_model = small}};
  for (FixtureOptions options : all) {
    options.on_deduplicate = compare;
    GpuEngineFixture gpu(model, with_choice(options));
    for (int round = 0; round < 2; ++round) {  // the second one finds prefixes in the cache
      std::vector<std::shared_ptr<TestSink>> heard;
      for (const Request& request : requests) heard.push_back(gpu.submit(request));
      gpu.run();
      for (std::size_t i = 0; i < requests.size(); ++i) expect_same(*heard[i], *alone[i], i);
    }
    if (options.blocks == 64 && GetParam().policy.is_full()) {
      EXPECT_GT(gpu.counters().preemptions, 0u);
    }
    if (options.draft_model) {
      EXPECT_GT(gpu.counters().drafts.tokens, 100u);
    }
    if (options.drafter == nullptr) continue;
    EXPECT_GT(gpu.counters().drafts.accepted, 100u);
    EXPECT_GT(gpu.counters().drafts.tokens, gpu.counters().drafts.accepted);
  }
  EXPECT_GT(joins, 0u);
}

// A model that drafts for itself computes the same rows, and chooses by the same numbers, options
// and masks: all of its tokens are accepted, behind prompts that it catches up with, too.
TEST(GpuEngineTest, AModelThatDraftsForItselfIsAlwaysRight) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  for (const std::size_t prompt : {5u, 40u, 700u}) {
    for (const float temperature : {0.0f, 0.9f}) {
      Request request;
      request.prompt = model::random_tokens(model.config(), prompt, 3);
      request.end.max_tokens = 80;
      request.end.ignore_eos = true;
      request.sampling.temperature = temperature;
      request.sampling.seed = 77;
      GpuEngineFixture plain(model, {});
      const auto expected = plain.submit(request);
      plain.run();
      GpuEngineFixture gpu(model, {.draft_model = model});
      const auto heard = gpu.submit(request);
      gpu.run();
      expect_same(*heard, *expected, prompt);
      const engine::DraftCounts& drafts = gpu.counters().drafts;
      EXPECT_EQ(drafts.accepted, drafts.tokens) << prompt << ", " << temperature;
      EXPECT_GT(drafts.accepted, 40u) << prompt << ", " << temperature;
    }
  }
}

// A hit that ends inside a block and forks of a partial block copy rows, with their scales: each
// length of what is shared, in layers after the first as well.
TEST_P(GpuEngine, AHitThatEndsInsideABlockGivesTheAnswerOfAColdStart) {
  REQUIRE_GPU();
  const SeededModel model({.layers = 3, .heads = 8, .kv_heads = 2, .head_dim = 128});
  const model::Tokens shared = model::random_tokens(model.config(), 96, 21);
  GpuEngineFixture warm(model, with_choice());
  Request first;
  first.prompt = shared;
  first.end.max_tokens = 1;
  warm.submit(first);
  warm.run();
  for (std::size_t length = 65; length <= 80; ++length) {
    Request request;
    request.prompt.assign(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(length));
    for (const TokenId token : model::random_tokens(model.config(), 9, 100 + length)) {
      request.prompt.push_back(token);
    }
    request.end.max_tokens = 12;
    request.sampling.n = 3;
    request.sampling.temperature = 1.0f;
    request.sampling.logprobs = 2;
    request.sampling.seed = length;
    GpuEngineFixture cold(model, with_choice());
    const auto expected = cold.submit(request);
    cold.run();
    const auto got = warm.submit(request);
    warm.run();
    // Under a policy a hit ends where pages behind the window were released.
    if (GetParam().policy.is_full()) {
      ASSERT_GE(got->answers[0].record.prompt_tokens_cached, length);
    }
    expect_same(*got, *expected, length);
  }
}

// Shapes of steps come and go; graphs of all of them would fill the device.
TEST_P(GpuEngine, GraphsThatCannotBeMadeCostNoAnswer) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const std::vector<Request> requests = requests_of(model.config(), 16);
  std::vector<std::shared_ptr<TestSink>> expected;
  GpuEngineFixture plain(model, with_choice({.graphs = false}));
  for (const Request& request : requests) expected.push_back(plain.submit(request));
  plain.run();
  for (const std::uint64_t failures : {1u, 1000000u}) {
    GpuEngineFixture gpu(model, with_choice());
    device::fail_next_graphs(failures);
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests) heard.push_back(gpu.submit(request));
    gpu.run();
    device::fail_next_graphs(0);
    for (std::size_t i = 0; i < requests.size(); ++i) expect_same(*heard[i], *expected[i], i);
  }
}

// Answers that are longer than the context, in a cache that holds a part of them.
TEST(GpuEngineTest, APolicyKeepsAnAnswerGoingPastTheContext) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  Request request;
  request.prompt = model::random_tokens(model.config(), 100, 3);
  request.end.max_tokens = 700;
  request.sampling.logprobs = 1;
  const kv::KvPolicy policy = {.window = 60, .sinks = 4};
  GpuEngineFixture wide(model, {.kv_policy = policy});
  const auto expected = wide.submit(request);
  wide.run();
  ASSERT_EQ(expected->answers[0].tokens.size(), 700u) << expected->answers[0].message;
  for (const std::uint32_t batched : {32u, 256u}) {
    GpuEngineFixture gpu(
        model,
        {.blocks = 96, .batched_tokens = batched, .kv_policy = policy, .context_tokens = 128});
    const auto got = gpu.submit(request);
    gpu.run();
    expect_same(*got, *expected, batched);
  }
}

TEST(GpuEngineTest, ADeviceThatIsLostAtAnyCallEndsEveryRequestAndSaysWhy) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const std::vector<Request> requests = requests_of(model.config(), 8);
  for (std::uint64_t call = 1; call < 200; call += 1 + call / 4) {
    GpuEngineFixture gpu(model, {});
    device::fail_from_call(call);
    std::vector<std::shared_ptr<TestSink>> heard;
    for (const Request& request : requests) heard.push_back(gpu.submit(request));
    gpu.run();
    heard.push_back(gpu.submit(requests[0]));
    gpu.run();
    device::fail_from_call(0);
    std::size_t lost = 0;
    for (const auto& each : heard) {
      ASSERT_TRUE(each->ended()) << "call " << call;
      for (const TestSink::Given& given : each->answers) {
        if (given.reason != engine::FinishReason::kLost) continue;
        ++lost;
        ASSERT_TRUE(given.message.starts_with("GPU: ")) << given.message;
      }
    }
    ASSERT_GT(lost, 0u) << "call " << call;
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
