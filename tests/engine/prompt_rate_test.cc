// How fast prompts are computed is measured in steps of prompts alone: servers that decode in
// batches, with drafts or without, estimate the time to the first token by it.
#include <gtest/gtest.h>

#include "engine/core.h"
#include "engine/engine_fixture.h"
#include "engine/null_runner.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::engine {
namespace {

constexpr std::int64_t kRowNs = 1'000'000;      // of a prompt: 1,000 rows a second
constexpr std::int64_t kDecodeNs = 10'000'000;  // of a sequence that decodes

// TimedRunner samples token 1, and a launch takes as long as its rows say.
class TimedRunner final : public Runner {
 public:
  explicit TimedRunner(ManualClock& clock) : clock_(clock) {}

  std::uint32_t drafts_max() const override { return 8; }
  void launch(const Launch& launch) override {
    std::size_t results = 0;
    for (const LaunchSample& sample : launch.samples) results += 1 + sample.drafts.size();
    samples_.assign(results, Result<SampledToken>(SampledToken{TokenId(1), {}}));
    ns_ = 0;
    for (const LaunchRows& rows : launch.rows) {
      const bool is_prompt = rows.rows > 1 && rows.drafts.empty();
      ns_ += is_prompt ? rows.rows * kRowNs : kDecodeNs;
    }
  }
  Collected collect() override {
    clock_.advance_ns(ns_);
    return {std::span(samples_), {}};
  }

 private:
  ManualClock& clock_;
  std::int64_t ns_ = 0;
  std::vector<Result<SampledToken>> samples_;
};

class PromptRate : public testing::TestWithParam<bool> {};

TEST_P(PromptRate, IsLeftAloneByTwentySequencesThatDecode) {
  CoreOptions options;
  options.limits = {.vocabulary = 1000, .context_tokens = 2000, .sequences_max = 32};
  options.scheduler.sequences_max = 32;
  options.scheduler.batched_tokens_max = 256;
  options.space = "timed";
  speculate::RecordedDrafter drafter({.tokens_max = 4, .vocabulary = 1000});
  if (GetParam()) options.drafter = &drafter;
  kv::Cache cache({.blocks = 5000});
  sched::TenantTable tenants;
  ManualClock clock;
  clock.advance_ns(1);
  TimedRunner runner(clock);
  Core core(options, cache, tenants, runner, clock);
  const auto sink = std::make_shared<DeafSink>();
  for (std::uint32_t i = 0; i < 20; ++i) {
    Request request;
    for (std::uint32_t t = 0; t < 50; ++t) request.prompt.push_back(TokenId(i * 40 + t));
    request.end.max_tokens = 500;
    std::vector<TokenId> whole = request.prompt;
    whole.resize(600, TokenId(1));
    drafter.record(std::move(whole));
    core.submit(RequestId(i), request, sink);
  }
  while (core.counters().prompt_tokens < 20 * 50) core.step();
  ASSERT_TRUE(core.prompt_rate().units_per_second().has_value());
  // Some steps of prompts had a few sequences that decode beside them.
  const double rate = *core.prompt_rate().units_per_second();
  EXPECT_LE(rate, 1000);
  EXPECT_GE(rate, 400);
  const std::uint64_t steps = core.counters().steps;
  while (core.counters().steps < steps + 50) core.step();
  EXPECT_EQ(*core.prompt_rate().units_per_second(), rate);
  EXPECT_EQ(core.counters().drafts.accepted > 0, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Drafts, PromptRate, testing::Bool(), [](const auto& tested) {
  return tested.param ? "WithDrafts" : "WithoutDrafts";
});

}  // namespace
}  // namespace pagoda::engine
