// Whole requests on a GPU: what an answer gets does not depend on who runs beside it, on the cache,
// on preemption or on forks. A request alone on a machine of its own is what all is compared with.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "gpu/gpu_desk.h"
#include "gpu/open_gpu.h"

namespace pagoda::gpu_test {
namespace {

using engine::Heard;
using engine::Request;

// Greedy and drawn, with and without log-probabilities, forked and penalised: every way a token is
// chosen.
std::vector<Request> requests_of(const model::Config& config, std::size_t count) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
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

TEST(GpuEngineTest, NeighboursCachePreemptionAndGraphsChangeNoAnswer) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const std::vector<Request> requests = requests_of(model.config(), 24);
  std::vector<std::shared_ptr<Heard>> alone;
  for (const Request& request : requests) {
    GpuDesk desk(model, {});
    alone.push_back(desk.submit(request));
    desk.run();
  }
  // Blocks of the same tokens that were computed twice have the same bytes.
  std::uint64_t joins = 0;
  const auto compare = [&](std::span<const std::byte> mine, std::span<const std::byte> existing) {
    ++joins;
    EXPECT_TRUE(std::ranges::equal(mine, existing)) << "join " << joins;
  };
  const DeskOptions all[] = {
      {}, {.batched_tokens = 64}, {.graphs = false}, {.blocks = 64, .batched_tokens = 128}};
  for (DeskOptions options : all) {
    options.on_join = compare;
    GpuDesk desk(model, options);
    for (int round = 0; round < 2; ++round) {  // the second one finds prefixes in the cache
      std::vector<std::shared_ptr<Heard>> heard;
      for (const Request& request : requests) heard.push_back(desk.submit(request));
      desk.run();
      for (std::size_t i = 0; i < requests.size(); ++i) expect_same(*heard[i], *alone[i], i);
    }
    if (options.blocks == 64) {
      EXPECT_GT(desk.counters().preemptions, 0u);
    }
  }
  EXPECT_GT(joins, 0u);
}

TEST(GpuEngineTest, ADeviceThatIsLostAtAnyCallEndsEveryRequestAndSaysWhy) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const std::vector<Request> requests = requests_of(model.config(), 8);
  for (std::uint64_t call = 1; call < 200; call += 1 + call / 4) {
    GpuDesk desk(model, {});
    device::fail_from_call(call);
    std::vector<std::shared_ptr<Heard>> heard;
    for (const Request& request : requests) heard.push_back(desk.submit(request));
    desk.run();
    heard.push_back(desk.submit(requests[0]));
    desk.run();
    device::fail_from_call(0);
    std::size_t lost = 0;
    for (const auto& each : heard) {
      ASSERT_TRUE(each->ended()) << "call " << call;
      for (const Heard::Given& given : each->answers) {
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
