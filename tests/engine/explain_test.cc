// The engine explains why a request's prompt was not all cached.
#include <gtest/gtest.h>

#include "engine/engine_fixture.h"

namespace pagoda::engine {
namespace {

using kv::MissReason;

BackendOptions tight_backend() {
  BackendOptions options;
  options.threads = 1;
  options.kv_bytes = 1 << 20;
  options.context_tokens = 256;
  options.scheduler.sequences_max = 4;
  options.scheduler.batched_tokens_max = 64;
  return options;
}

class EngineExplains : public testing::Test {
 protected:
  static Request asked(std::uint64_t seed, std::size_t tokens = 200) {
    Request request;
    request.prompt = model::random_tokens(stories().config(), tokens, seed);
    request.end.max_tokens = 2;
    request.end.ignore_eos = true;
    request.explain = true;
    return request;
  }
  kv::Explanation serve(const Request& request) {
    const auto heard = fixture_.submit(request);
    fixture_.run();
    return heard->answers[0].record.explanation.value();
  }
  SequenceRecord record_of(Request request) {
    request.explain_only = true;
    return fixture_.submit(request)->answers[0].record;
  }
  kv::Explanation ask(const Request& request) { return record_of(request).explanation.value(); }
  TurnEstimate estimate(const Request& request) { return record_of(request).estimate.value(); }
  const kv::MissCounters& misses() { return fixture_.core().counters().misses; }

  EngineFixture fixture_{stories(), tight_backend(), *kernels::available_sets().back()};
};

TEST_F(EngineExplains, EveryRequestThatRanAndCountsItByItsReason) {
  EXPECT_EQ(serve(asked(1)).reason, MissReason::kNeverSeen);
  EXPECT_EQ(serve(asked(1)).reason, MissReason::kNone);
  Request other = asked(1);
  other.prompt[70] = TokenId(other.prompt[70].value() == 9 ? 8 : 9);
  const kv::Explanation differs = serve(other);
  EXPECT_EQ(differs.reason, MissReason::kDiffers);
  EXPECT_EQ(differs.stops_at(), 70u);
  EXPECT_EQ(differs.stored.front(), asked(1).prompt[70]);
  Request quiet = asked(1);
  quiet.explain = false;
  const auto heard = fixture_.submit(quiet);
  fixture_.run();
  EXPECT_FALSE(heard->answers[0].record.explanation.has_value());
  EXPECT_EQ(misses()[MissReason::kNeverSeen].requests, 1u);
  EXPECT_EQ(misses()[MissReason::kNeverSeen].tokens, 200u);
  EXPECT_EQ(misses()[MissReason::kNone].requests, 2u) << "counted whether asked or not";
  EXPECT_EQ(misses()[MissReason::kNone].tokens, 2u);
  EXPECT_EQ(misses()[MissReason::kDiffers].tokens, 130u);
}

TEST_F(EngineExplains, WithoutComputingWhereOnlyThatIsAsked) {
  serve(asked(1));
  const Counters before = fixture_.core().counters();
  const auto free = fixture_.backend().cache().pool().blocks_free();
  EXPECT_EQ(ask(asked(1)).reason, MissReason::kNone);
  EXPECT_EQ(ask(asked(2)).reason, MissReason::kNeverSeen);
  EXPECT_EQ(ask(asked(1, 1)).reason, MissReason::kTooShort);
  fixture_.run();
  EXPECT_EQ(fixture_.core().counters().tokens_computed, before.tokens_computed);
  EXPECT_EQ(misses()[MissReason::kNeverSeen].requests,
            before.misses[MissReason::kNeverSeen].requests);
  EXPECT_EQ(fixture_.backend().cache().pool().blocks_free(), free);
  EXPECT_EQ(ask(asked(2)).reason, MissReason::kNeverSeen) << "being asked for is not being there";
}

TEST_F(EngineExplains, ThatARunningRequestIsComputingIt) {
  const auto first = fixture_.submit(asked(1));
  fixture_.step();
  const kv::Explanation told = ask(asked(1));
  EXPECT_EQ(told.reason, MissReason::kInWork);
  EXPECT_EQ(told.tokens_matched, 64u) << "a step's rows";
  EXPECT_EQ(told.tokens_reachable, 199u);
  Request salted = asked(1);
  salted.cache_salt = "mine";
  EXPECT_EQ(ask(salted).tokens_reachable, 64u)
      << "public rows are there; what is computed is not mine";
  EXPECT_NE(ask(salted).reason, MissReason::kInWork);
  fixture_.run();
  EXPECT_EQ(ask(asked(1)).reason, MissReason::kNone);
}

TEST_F(EngineExplains, HowManyTokensAreComputedBeforeAndFor) {
  const TurnEstimate cold = estimate(asked(1));
  EXPECT_EQ(cold.tokens_to_compute, 200u);
  EXPECT_EQ(cold.tokens_queued, 0u);
  EXPECT_FALSE(cold.seconds().has_value()) << "no speed is known before the first step";
  fixture_.submit(asked(1));
  EXPECT_EQ(estimate(asked(2)).tokens_queued, 200u);
  fixture_.step();
  EXPECT_EQ(estimate(asked(2)).tokens_queued, 136u) << "a step computes 64";
  Request urgent = asked(2);
  urgent.priority = -1;
  EXPECT_EQ(estimate(urgent).tokens_queued, 0u) << "it would come before the other one";
  fixture_.run();
  EXPECT_EQ(estimate(asked(1)).tokens_to_compute, 1u);
  EXPECT_EQ(estimate(asked(1)).tokens_queued, 0u);
  fixture_.submit(asked(1));
  fixture_.submit(asked(2));
  EXPECT_EQ(estimate(asked(3)).tokens_queued, 1u + 200u) << "what is cached is not computed";
  fixture_.run();
}

TEST(TurnEstimate, IsTheTimeOfWhatIsComputedAndLoaded) {
  TurnEstimate turn = {.tokens_to_compute = 100, .tokens_queued = 300, .tokens_per_second = 1000.0};
  EXPECT_DOUBLE_EQ(turn.seconds().value(), 0.4);
  turn.tiers.seconds = 0.25;
  EXPECT_DOUBLE_EQ(turn.seconds().value(), 0.65);
  turn.tiers.seconds.reset();
  EXPECT_FALSE(turn.seconds().has_value());
}

TEST_F(EngineExplains, ThatLogprobsOfThePromptNeedAllOfItComputed) {
  serve(asked(1));
  Request scored = asked(1);
  scored.sampling.prompt_logprobs = 1;
  const kv::Explanation told = serve(scored);
  EXPECT_EQ(told.reason, MissReason::kPromptLogprobs);
  EXPECT_EQ(told.tokens_matched, 0u);
  EXPECT_EQ(told.tokens_reachable, 199u) << "without them";
}

TEST_F(EngineExplains, ForWhomItMadeRoom) {
  const auto as = [](std::uint64_t seed, const char* salt) {
    Request request = asked(seed);
    request.cache_salt = salt;
    return request;
  };
  const std::uint64_t prompts = fixture_.backend().cache().pool().blocks() / 13 + 1;
  serve(as(1, "me"));
  for (std::uint64_t i = 0; i < prompts; ++i) serve(as(100 + i, "them"));
  const kv::Explanation told = serve(as(1, "me"));
  EXPECT_EQ(told.reason, MissReason::kEvicted);
  EXPECT_TRUE(told.eviction->for_others);
  EXPECT_EQ(told.tokens_reachable, 199u);
  for (std::uint64_t i = 0; i < prompts; ++i) serve(as(200 + i, "me"));
  EXPECT_FALSE(ask(as(1, "me")).eviction->for_others);
  EXPECT_EQ(ask(as(1, "them")).reason, MissReason::kNeverSeen);
  EXPECT_EQ(misses()[MissReason::kEvicted].requests, 1u);
  EXPECT_EQ(misses().requests_evicted_for_others, 1u);
}

// Tenants may have several salts; an explanation tells a tenant of its own salts alone.
TEST_F(EngineExplains, ThatAnotherSaltOfTheTenantHasIt) {
  const sched::TenantId me = fixture_.tenants().add("me", {});
  const sched::TenantId you = fixture_.tenants().add("you", {});
  const auto as = [](sched::TenantId tenant, const char* salt) {
    Request request = asked(1);
    request.tenant = tenant;
    request.cache_salt = salt;
    return request;
  };
  serve(as(me, "a"));
  EXPECT_EQ(ask(as(me, "b")).reason, MissReason::kOtherSalt);
  EXPECT_EQ(ask(as(you, "b")).reason, MissReason::kNeverSeen);
  EXPECT_EQ(ask(as(sched::TenantId(0), "c")).reason, MissReason::kNeverSeen);
}

}  // namespace
}  // namespace pagoda::engine
