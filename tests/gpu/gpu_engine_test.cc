// Whole requests on a GPU: what an answer gets does not depend on who runs beside it, on the cache,
// on preemption or on forks. A request alone on a machine of its own is what all is compared with.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "engine/core.h"
#include "engine/engine_desk.h"
#include "engine/gpu_machine.h"
#include "gpu/gpu_model.h"
#include "gpu/open_gpu.h"

namespace pagoda::gpu_test {
namespace {

using engine::Heard;
using engine::Request;

struct DeskOptions {
  std::uint32_t blocks = 4096;
  std::uint32_t batched_tokens = 512;
  bool graphs = true;
};

// A core over a machine with a GPU, driven by hand.
class GpuDesk {
 public:
  GpuDesk(const SeededModel& model, const DeskOptions& options) {
    engine::CpuMachineOptions shared;
    shared.context_tokens = 2048;
    shared.scheduler.sequences_max = 16;
    shared.scheduler.batched_tokens_max = options.batched_tokens;
    auto made = engine::create_gpu_machine(
        model.config(), model.weights(), kernels::ref_set(),
        {.shared = shared, .blocks = options.blocks, .graphs = options.graphs});
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok()) std::abort();
    machine_ = std::move(made).value();
    core_ = std::make_unique<engine::Core>(machine_->core_options(), machine_->cache(), tenants_,
                                           machine_->runner(), clock_);
  }

  std::shared_ptr<Heard> submit(const Request& request) {
    auto heard = std::make_shared<Heard>(request.sampling.n);
    core_->submit(engine::RequestId(requests_++), request, heard);
    return heard;
  }
  void run() {
    while (core_->step()) {
    }
    core_->check();
  }
  const engine::Counters& counters() const { return core_->counters(); }

 private:
  std::unique_ptr<engine::Machine> machine_;
  sched::TenantTable tenants_;
  SteadyClock clock_;
  std::unique_ptr<engine::Core> core_;
  std::uint64_t requests_ = 0;
};

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
    if (i % 4 == 2) request.sampling.logprobs = 3;
    if (i % 6 == 3) request.sampling.n = 3;
    if (i % 5 == 4) request.sampling.repetition_penalty = 1.2f;
    if (i % 7 == 6) request.sampling.prompt_logprobs = 2;
    requests.push_back(request);
  }
  return requests;
}

void expect_same(const Heard& got, const Heard& alone, std::size_t number) {
  ASSERT_TRUE(engine::same_scores(got.prompt_scores, alone.prompt_scores)) << "request " << number;
  for (std::size_t a = 0; a < alone.answers.size(); ++a) {
    ASSERT_TRUE(alone.answers[a].reason.has_value());
    ASSERT_EQ(alone.answers[a].message, "");
    ASSERT_EQ(got.answers[a].tokens, alone.answers[a].tokens)
        << "request " << number << ", answer " << a;
    ASSERT_TRUE(engine::same_scores(got.answers[a].scores, alone.answers[a].scores))
        << "request " << number << ", answer " << a;
  }
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
  const DeskOptions all[] = {
      {}, {.batched_tokens = 64}, {.graphs = false}, {.blocks = 64, .batched_tokens = 128}};
  for (const DeskOptions& options : all) {
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
}

}  // namespace
}  // namespace pagoda::gpu_test
