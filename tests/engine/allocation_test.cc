// A step that admits nothing allocates nothing; the test counts calls of operator new.
#include <gtest/gtest.h>

#include "counted_allocations.h"
#include "engine/core.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

TEST(Allocation, AStepThatAdmitsNothingAllocatesNothing) {
  CoreOptions options;
  options.limits = {.vocabulary = 1000, .context_tokens = 2000, .sequences_max = 64};
  options.scheduler.sequences_max = 64;
  options.scheduler.batched_tokens_max = 256;
  options.space = "null";
  kv::Cache cache({.blocks = 10000});
  sched::TenantTable tenants;
  NullRunner runner;
  const SteadyClock clock;
  Core core(options, cache, tenants, runner, clock);
  const auto sink = std::make_shared<DeafSink>();
  for (std::uint32_t i = 0; i < 200; ++i) {  // 64 run, the rest waits
    Request request;
    for (std::uint32_t t = 0; t < 20; ++t) request.prompt.push_back(TokenId(i + t * 3));
    request.end.max_tokens = 1000;
    core.submit(RequestId(i), request, sink);
  }
  for (int i = 0; i < 50; ++i) core.step();
  ASSERT_EQ(core.scheduler().running().size(), 64u);

  const std::uint64_t tokens = sink->tokens();
  const std::uint64_t before = allocations_so_far();
  for (int i = 0; i < 200; ++i) core.step();
  EXPECT_EQ(allocations_so_far() - before, 0u);
  EXPECT_EQ(sink->tokens() - tokens, 200u * 64u) << "every step gave every answer a token";
}

// RepeatingRunner samples token 1 for every row, drafts included.
class RepeatingRunner final : public Runner {
 public:
  std::uint32_t drafts_max() const override { return speculate::kDraftTokensMax; }
  void launch(const Launch& launch) override {
    std::size_t results = 0;
    for (const LaunchSample& sample : launch.samples) results += 1 + sample.drafts.size();
    samples_.resize(results, Result<SampledToken>(SampledToken{TokenId(1), {}}));
  }
  Collected collect() override { return {std::span(samples_), {}}; }

 private:
  std::vector<Result<SampledToken>> samples_;
};

TEST(Allocation, NeitherDoesAStepWithDrafts) {
  using speculate::DraftMethod;
  CoreOptions options;
  options.limits = {.vocabulary = 1000, .context_tokens = 20'000, .sequences_max = 8};
  options.scheduler.sequences_max = 8;
  options.scheduler.batched_tokens_max = 256;
  options.space = "null";
  options.speculation.methods = speculate::MethodSet(DraftMethod::kTree, DraftMethod::kSuffix,
                                                     DraftMethod::kNgram, DraftMethod::kPrediction);
  kv::Cache cache({.blocks = 20'000});
  sched::TenantTable tenants;
  RepeatingRunner runner;
  const ManualClock clock;  // stands still: what rows cost stays unknown, and all drafts pay
  Core core(options, cache, tenants, runner, clock);
  const auto sink = std::make_shared<DeafSink>();
  for (std::uint32_t i = 0; i < 8; ++i) {
    Request request;
    for (std::uint32_t t = 0; t < 20; ++t) request.prompt.push_back(TokenId(i + t * 3));
    request.end.max_tokens = 19'000;
    request.prediction =
        std::make_shared<speculate::PredictedText>(std::vector<TokenId>(500, TokenId(1)));
    core.submit(RequestId(i), request, sink);
  }
  for (int i = 0; i < 50; ++i) core.step();
  ASSERT_EQ(core.scheduler().running().size(), 8u);
  const std::uint64_t accepted = core.counters().drafts.accepted;
  const std::uint64_t before = allocations_so_far();
  for (int i = 0; i < 50; ++i) core.step();
  EXPECT_EQ(allocations_so_far() - before, 0u);
  EXPECT_GT(core.counters().drafts.accepted, accepted + 500) << "there were drafts";
}

}  // namespace
}  // namespace pagoda::engine
