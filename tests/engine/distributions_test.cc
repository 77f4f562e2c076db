// Tests the engine's histograms over a clock that only the runner moves: every figure is known.
#include "engine/distributions.h"

#include <gtest/gtest.h>

#include "engine/core.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// Every launch takes 10 ms, every collect 2 ms.
class SlowRunner final : public Runner {
 public:
  explicit SlowRunner(ManualClock& clock) : clock_(clock) {}
  void launch(const Launch& launch) override {
    clock_.advance_ns(10 * kMillisecond);
    inner_.launch(launch);
  }
  Collected collect() override {
    clock_.advance_ns(2 * kMillisecond);
    return inner_.collect();
  }

 private:
  ManualClock& clock_;
  NullRunner inner_;
};

class DistributionsTest : public testing::Test {
 protected:
  DistributionsTest() {
    clock_.advance_ns(kMillisecond);
    CoreOptions options;
    options.limits = {.vocabulary = 1000, .context_tokens = 200, .sequences_max = 4};
    options.scheduler.sequences_max = 4;
    options.scheduler.batched_tokens_max = 32;
    options.requests_queued_max = 8;
    options.space = "slow";
    core_.emplace(options, cache_, tenants_, runner_, clock_);
  }
  void submit(std::uint64_t id, std::size_t prompt, std::uint32_t answer, std::uint32_t n = 1) {
    Request request;
    for (std::uint32_t i = 0; i < prompt; ++i) request.prompt.push_back(TokenId(i));
    request.end.max_tokens = answer;
    request.sampling.n = n;
    core_->submit(RequestId(id), request, sink_);
  }
  void run() {
    while (core_->step()) {
    }
    core_->check();
  }
  static void expect_one(const Histogram& histogram, double value) {
    EXPECT_EQ(histogram.read().count(), 1u);
    EXPECT_NEAR(histogram.read().sum, value, 1e-12);
  }

  ManualClock clock_;
  kv::Cache cache_{{.blocks = 100}};
  sched::TenantTable tenants_;
  SlowRunner runner_{clock_};
  std::shared_ptr<DeafSink> sink_ = std::make_shared<DeafSink>();
  std::optional<Core> core_;
};

// 40 tokens are two chunks of at most 32: the first token comes with the second step.
TEST_F(DistributionsTest, ASequencesTimesAreThoseOfItsSteps) {
  submit(1, 40, 3);
  clock_.advance_ns(5 * kMillisecond);
  run();
  const Distributions& d = core_->distributions();
  expect_one(d.queue_s, 0.005);
  expect_one(d.first_token_s, 0.005 + 2 * 0.012);
  expect_one(d.prefill_s, 2 * 0.012);
  expect_one(d.decode_s, 2 * 0.012);
  expect_one(d.inference_s, 4 * 0.012);
  expect_one(d.total_s, 0.005 + 4 * 0.012);
  expect_one(d.token_mean_s, 0.012);
  EXPECT_EQ(d.token_gap_s.read().count(), 2u);
  EXPECT_NEAR(d.token_gap_s.read().sum, 2 * 0.012, 1e-12);
  expect_one(d.prompt_tokens, 40);
  expect_one(d.prompt_tokens_computed, 40);
  expect_one(d.output_tokens, 3);
  expect_one(d.tokens_asked, 3);
}

TEST_F(DistributionsTest, AStepsTimeIsSplitByPhase) {
  submit(1, 10, 2);
  run();
  const Distributions& d = core_->distributions();
  const auto sum = [&](StepPhase phase) {
    return d.phase_s[static_cast<std::size_t>(phase)].read().sum;
  };
  EXPECT_NEAR(sum(StepPhase::kPlan), 0, 1e-12);
  EXPECT_NEAR(sum(StepPhase::kLaunch), 2 * 0.010, 1e-12);
  EXPECT_NEAR(sum(StepPhase::kWait), 2 * 0.002, 1e-12);
  EXPECT_NEAR(sum(StepPhase::kEmit), 0, 1e-12);
  EXPECT_EQ(d.step_s.read().count(), 2u);
  EXPECT_NEAR(d.step_s.read().sum, 2 * 0.012, 1e-12);
  EXPECT_EQ(d.step_predicted_s.read().count(), 1u) << "nothing is known before the first";
  EXPECT_NEAR(d.step_predicted_s.read().sum, 0.012 / 2, 0.006);
  EXPECT_EQ(d.step_tokens.read().count(), 2u);
  EXPECT_EQ(d.step_tokens.read().sum, 10 + 1);
}

TEST_F(DistributionsTest, APromptOfSeveralSequencesCountsOnce) {
  submit(1, 20, 4, 3);
  run();
  const Distributions& d = core_->distributions();
  expect_one(d.prompt_tokens, 20);
  expect_one(d.sequences_asked, 3);
  expect_one(d.output_tokens_longest, 4);
  EXPECT_EQ(d.output_tokens.read().count(), 3u);
  EXPECT_EQ(d.first_token_s.read().count(), 3u);
  EXPECT_EQ(core_->counters().prompt_tokens, 20u);
  EXPECT_EQ(core_->counters().output_tokens, 12u);
  EXPECT_EQ(core_->counters().requests_finished, 1u);
}

TEST_F(DistributionsTest, LookupsAreCountedOncePerRequest) {
  submit(1, 40, 2);
  run();
  submit(2, 40, 2);  // all but its last token is cached
  run();
  submit(3, 60, 2);  // 40 of the prompt's tokens are cached
  run();
  const LookupCounts& lookups = core_->counters().lookups;
  EXPECT_EQ(lookups.none, 1u);
  EXPECT_EQ(lookups.whole, 1u);
  EXPECT_EQ(lookups.part, 1u);
  EXPECT_EQ(lookups.tokens_asked, 40u + 40u + 60u);
  EXPECT_EQ(lookups.tokens_found, 39u + 40u);
  EXPECT_EQ(core_->counters().prompt_tokens_cached, 39u + 40u);
}

TEST_F(DistributionsTest, EveryEndIsCountedByItsReason) {
  const auto ended = [&](FinishReason reason) {
    return core_->counters().sequences_finished[static_cast<std::size_t>(reason)];
  };
  submit(1, 10, 2);
  run();
  EXPECT_EQ(ended(FinishReason::kLength), 1u);
  submit(2, 10, 50);
  core_->step();
  core_->cancel(RequestId(2));
  EXPECT_EQ(ended(FinishReason::kCancelled), 1u);
  submit(3, 10, 50);
  core_->step();
  core_->cancel(RequestId(3), FinishReason::kStop);
  EXPECT_EQ(ended(FinishReason::kStop), 1u);
  for (std::uint64_t id = 10; id < 20; ++id) submit(id, 10, 2);
  EXPECT_EQ(ended(FinishReason::kRefused), 2u);
  EXPECT_EQ(tenants_[TenantId(0)].use.requests_refused, 2u);
  // A cancelled sequence says nothing about E2E latency.
  EXPECT_EQ(core_->distributions().total_s.read().count(), 2u);
}

// The first request takes three of the four slots; the others want three as well.
TEST_F(DistributionsTest, WaitingSequencesAreCountedByReason) {
  const sched::WaitingQueue& queue = core_->scheduler().waiting();
  const auto waiting = [&](sched::WaitReason reason) {
    return queue.by_reason()[static_cast<std::size_t>(reason)];
  };
  for (std::uint64_t id = 1; id <= 6; ++id) submit(id, 10, 20, 3);
  EXPECT_EQ(waiting(sched::WaitReason::kNew), 6u);
  core_->step();
  EXPECT_EQ(waiting(sched::WaitReason::kNew), 0u);
  EXPECT_EQ(waiting(sched::WaitReason::kSequences), 5u);
  run();
  EXPECT_EQ(queue.by_reason(), sched::WaitCounts{});
}

TEST_F(DistributionsTest, ATenantsUseIsItsOwn) {
  const TenantId second = tenants_.add("second", {});
  submit(1, 20, 5);
  Request request;
  request.prompt = {TokenId(7), TokenId(8), TokenId(9)};
  request.end.max_tokens = 2;
  request.tenant = second;
  core_->submit(RequestId(2), request, sink_);
  run();
  EXPECT_EQ(tenants_[second].use.prompt_tokens, 3u);
  EXPECT_EQ(tenants_[second].use.output_tokens, 2u);
  EXPECT_EQ(tenants_[second].use.requests_finished, 1u);
  EXPECT_EQ(tenants_[TenantId(0)].use.prompt_tokens, 20u);
  EXPECT_EQ(tenants_[TenantId(0)].use.output_tokens, 5u);
}

}  // namespace
}  // namespace pagoda::engine
