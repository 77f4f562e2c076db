#include "engine/core.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine_fixture.h"

namespace pagoda::engine {
namespace {

BackendOptions small_backend() {
  BackendOptions options;
  options.threads = 1;
  options.kv_bytes = 8 << 20;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  return options;
}

class CoreTest : public testing::Test {
 protected:
  Request prompt_of(std::size_t tokens, std::uint32_t answer = 8) const {
    Request request;
    request.prompt = model::random_tokens(stories().config(), tokens, 5);
    request.end.max_tokens = answer;
    request.end.ignore_eos = true;
    return request;
  }
  std::string refusal(const Request& request) {
    const Status checked = check_request(request, fixture_.backend().core_options().limits, {});
    return checked.ok() ? "" : checked.error().message;
  }

  EngineFixture fixture_{stories(), small_backend(), *kernels::available_sets().back()};
};

TEST_F(CoreTest, BadInputIsRefusedByTheNameOfItsField) {
  const auto refused = [&](const char* field, auto&& spoil) {
    Request request = prompt_of(10);
    spoil(request);
    EXPECT_EQ(refusal(request).find(field), 0u) << field << ": " << refusal(request);
  };
  EXPECT_EQ(refusal(prompt_of(10)), "");
  refused("prompt", [](Request& r) { r.prompt.clear(); });
  refused("prompt[3]", [](Request& r) { r.prompt[3] = TokenId(512); });
  refused("prompt", [](Request& r) { r.prompt.resize(512); });
  refused("max_tokens", [](Request& r) { r.end.max_tokens = 503; });
  refused("max_tokens", [](Request& r) { r.end.max_tokens = 0; });
  refused("min_tokens", [](Request& r) { r.end.min_tokens = 9; });
  refused("temperature", [](Request& r) { r.sampling.temperature = -1; });
  refused("temperature", [](Request& r) { r.sampling.temperature = std::nanf(""); });
  refused("top_p", [](Request& r) { r.sampling.top_p = 0; });
  refused("n", [](Request& r) { r.sampling.n = 5; });
  refused("n", [](Request& r) { r.sampling.n = 0; });
  refused("cache_salt", [](Request& r) { r.cache_salt.assign(513, 'x'); });
  refused("timeout", [](Request& r) { r.timeout_ns = -1; });
  refused("retain: 11 tokens", [](Request& r) { r.retain = {.tokens = 11, .time_ns = 1}; });
  refused("retain: 0 tokens", [](Request& r) { r.retain = {.tokens = 0, .time_ns = 1}; });
  refused("retain: 0 ns", [](Request& r) { r.retain = {.tokens = 1, .time_ns = 0}; });
  refused("retain: priority 101",
          [](Request& r) { r.retain = {.tokens = 1, .time_ns = 1, .priority = 101}; });
}

TEST_F(CoreTest, ARepeatedPromptIsCachedButForItsLastToken) {
  const auto cold = fixture_.submit(prompt_of(100));
  fixture_.run();
  const auto warm = fixture_.submit(prompt_of(100));
  fixture_.run();
  EXPECT_EQ(cold->answers[0].record.prompt_tokens_cached, 0u);
  EXPECT_EQ(cold->answers[0].record.prompt_tokens_computed, 100u);
  EXPECT_EQ(warm->answers[0].record.prompt_tokens_cached, 99u);
  EXPECT_EQ(warm->answers[0].record.prompt_tokens_computed, 1u);
  EXPECT_EQ(warm->answers[0].tokens, cold->answers[0].tokens);
}

// The cache has few blocks: whatever comes between, retained blocks are found, and only those.
TEST_F(CoreTest, WhatARequestHadRetainedOutlivesATurnoverOfTheCache) {
  BackendOptions options = small_backend();
  options.kv_bytes = 1 << 20;
  options.context_tokens = 128;
  options.retain_share = 0.25;
  EngineFixture fixture(stories(), options, *kernels::available_sets().back());
  const auto prompt = [&](std::uint64_t seed) {
    Request request = prompt_of(100, 2);
    request.prompt = model::random_tokens(stories().config(), 100, seed);
    return request;
  };
  const auto serve = [&](const Request& request) {
    const auto heard = fixture.submit(request);
    fixture.run();
    fixture.backend().cache().check();
    return heard->answers[0].record;
  };
  Request kept = prompt(1);
  kept.retain = {.tokens = 70, .time_ns = kRetainNsMax, .priority = 1};
  const SequenceRecord first = serve(kept);
  ASSERT_TRUE(first.retain.has_value());
  EXPECT_EQ(first.retain->refused, "");
  EXPECT_EQ(first.retain->tokens, 64u) << "four blocks of 16";
  serve(prompt(2));
  const std::uint64_t blocks = fixture.backend().cache().pool().blocks();
  for (std::uint64_t i = 0; i < blocks; ++i) serve(prompt(100 + i));
  EXPECT_EQ(serve(prompt(1)).prompt_tokens_cached, 64u);
  EXPECT_EQ(serve(prompt(2)).prompt_tokens_cached, 0u);

  Request much = prompt(3);
  much.retain = {.tokens = 100, .time_ns = kRetainNsMax, .priority = 1};
  std::string refused;
  for (std::uint64_t i = 0; refused.empty() && i < blocks; ++i) {
    much.prompt = model::random_tokens(stories().config(), 100, 1000 + i);
    refused = serve(much).retain->refused;
  }
  EXPECT_NE(refused.find("but the tenant keeps"), std::string::npos) << refused;
}

TEST_F(CoreTest, AnOutputIsAsReusableAsAPrompt) {
  const auto first = fixture_.submit(prompt_of(20, 30));
  fixture_.run();
  Request next = prompt_of(20);
  next.prompt.insert(next.prompt.end(), first->answers[0].tokens.begin(),
                     first->answers[0].tokens.end());
  next.prompt.push_back(TokenId(7));
  const auto second = fixture_.submit(next);
  fixture_.run();
  // The last token of a sequence is never fed.
  EXPECT_EQ(second->answers[0].record.prompt_tokens_cached, 20u + 29u);
}

TEST_F(CoreTest, PromptLogprobsComputeTheWholePrompt) {
  fixture_.submit(prompt_of(50));
  fixture_.run();
  Request request = prompt_of(50);
  request.sampling.prompt_logprobs = 3;
  const auto heard = fixture_.submit(request);
  fixture_.run();
  EXPECT_EQ(heard->answers[0].record.prompt_tokens_cached, 0u);
  ASSERT_EQ(heard->prompt_scores.size(), 49u);
  EXPECT_EQ(heard->prompt_scores[0].chosen.token, request.prompt[1]);
  EXPECT_EQ(heard->prompt_scores[0].top.size(), 3u);
}

TEST_F(CoreTest, AForkComputesThePromptOnce) {
  Request request = prompt_of(60, 10);
  request.sampling.n = 4;
  request.sampling.temperature = 1;
  request.sampling.seed = 3;
  const auto heard = fixture_.submit(request);
  fixture_.run();
  EXPECT_EQ(fixture_.core().counters().tokens_computed, 60u + 4u * 9u);
  EXPECT_NE(heard->answers[0].tokens, heard->answers[1].tokens);
}

TEST_F(CoreTest, CancellingFreesItsBlocksAtOnceAndDisturbsNobody) {
  const std::uint64_t all = fixture_.backend().cache().blocks_available();
  const auto stays = fixture_.submit(prompt_of(10, 20));
  const auto goes = fixture_.submit(prompt_of(200, 200));
  for (int i = 0; i < 3; ++i) fixture_.step();
  EXPECT_LT(fixture_.backend().cache().blocks_available(), all - 3);
  fixture_.cancel(2);
  fixture_.step();
  EXPECT_EQ(goes->answers[0].reason, FinishReason::kCancelled);
  EXPECT_GE(fixture_.backend().cache().blocks_available(), all - 3);
  fixture_.cancel(2);  // again, and for an id that never was
  fixture_.cancel(77);
  fixture_.run();
  EXPECT_EQ(stays->answers[0].reason, FinishReason::kLength);
  EXPECT_EQ(stays->answers[0].tokens.size(), 20u);
}

TEST_F(CoreTest, ADeadlineEndsASequence) {
  Request request = prompt_of(10, 400);
  request.timeout_ns = 1;
  const auto heard = fixture_.submit(request);
  fixture_.run();
  EXPECT_EQ(heard->answers[0].reason, FinishReason::kDeadline);
  EXPECT_EQ(fixture_.core().requests_open(), 0u);
}

TEST_F(CoreTest, WithoutALimitASequenceFillsTheContext) {
  Request request = prompt_of(10);
  request.end.max_tokens.reset();
  const auto heard = fixture_.submit(request);
  fixture_.run();
  EXPECT_EQ(heard->answers[0].reason, FinishReason::kContext);
  EXPECT_EQ(heard->answers[0].tokens.size(), stories().config().context - 10u);
}

TEST_F(CoreTest, StopTokensEndASequenceAndAreItsLastToken) {
  const auto all = fixture_.submit(prompt_of(10, 30));
  fixture_.run();
  const std::vector<TokenId> tokens = all->answers[0].tokens;
  Request request = prompt_of(10, 30);
  request.end.stop_token_ids = {tokens[7]};
  const auto heard = fixture_.submit(request);
  fixture_.run();
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[7]);
  EXPECT_EQ(heard->answers[0].reason, FinishReason::kStop);
  EXPECT_EQ(heard->answers[0].tokens, std::vector<TokenId>(tokens.begin(), first + 1));
}

TEST_F(CoreTest, TheRecordTellsTheTimesInOrder) {
  const auto heard = fixture_.submit(prompt_of(100, 10));
  fixture_.run();
  const SequenceRecord& record = heard->answers[0].record;
  EXPECT_LE(record.arrived_ns, record.started_ns);
  EXPECT_LT(record.started_ns, record.first_token_ns);
  EXPECT_LT(record.first_token_ns, record.finished_ns);
  EXPECT_EQ(record.gaps.count, 9u);
  EXPECT_GE(record.gaps.sum_ns, record.gaps.max_ns);
  EXPECT_EQ(record.output_tokens, 10u);
}

TEST(CoreLimits, AFullQueueAndATenantsLimitsAreRefusedThroughTheSink) {
  BackendOptions options = small_backend();
  options.scheduler.sequences_max = 1;
  EngineFixture fixture(stories(), options, *kernels::available_sets().back());
  const TenantId tenant = fixture.tenants().add("acme", {.requests_queued = 1});
  Request request;
  request.prompt = model::random_tokens(stories().config(), 10, 5);
  request.tenant = tenant;
  fixture.submit(request);
  const auto refused = fixture.submit(request);
  EXPECT_EQ(refused->answers[0].reason, FinishReason::kRefused);
  EXPECT_NE(refused->answers[0].message.find("acme"), std::string::npos);
}

TEST(CpuBackend, LowersTheContextToWhatTheCacheHolds) {
  BackendOptions options = small_backend();
  const auto whole =
      CpuBackend::create(stories().config(), stories().weights(), kernels::ref_set(), options);
  EXPECT_FALSE(whole.value()->context_asked().has_value());
  const std::uint64_t page = whole.value()->page_layout().page_bytes();
  options.kv_bytes = 11 * page;  // one block is for a copy
  const auto small =
      CpuBackend::create(stories().config(), stories().weights(), kernels::ref_set(), options);
  EXPECT_EQ(small.value()->core_options().limits.context_tokens, 160u);
  EXPECT_EQ(small.value()->context_asked(), stories().config().context);
  options.kv_bytes = page - 1;
  const auto none =
      CpuBackend::create(stories().config(), stories().weights(), kernels::ref_set(), options);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("`kv_cache_memory_bytes`: "), std::string::npos);
}

}  // namespace
}  // namespace pagoda::engine
