// The device is lost: requests end at once and say why, none hangs, nothing is published.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/core.h"
#include "engine/engine_fixture.h"
#include "engine/losing_runner.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

struct Fixture {
  explicit Fixture(Runner& computing) : losing(computing) {}

  static CoreOptions options() {
    CoreOptions options;
    options.limits = {.vocabulary = 1000, .context_tokens = 400, .sequences_max = 8};
    options.scheduler.sequences_max = 8;
    options.scheduler.batched_tokens_max = 32;
    options.space = "lost";
    return options;
  }
  std::shared_ptr<TestSink> submit(std::uint32_t first, std::uint32_t answers = 1) {
    Request request;
    for (std::uint32_t i = 0; i < 60; ++i) request.prompt.push_back(TokenId(first + i));
    request.end.max_tokens = 20;
    request.sampling.n = answers;
    auto heard = std::make_shared<TestSink>(answers);
    core.submit(RequestId(++requests), request, heard);
    return heard;
  }
  void run() {
    while (core.step()) core.check();
  }

  LosingRunner losing;
  kv::Cache cache{{.blocks = 200}};
  sched::TenantTable tenants;
  ManualClock clock;
  Core core{options(), cache, tenants, losing, clock};
  std::uint64_t requests = 0;
};

// The device is lost at each launch of three requests' life in turn.
template <class Computing>
void lose_at_every_launch() {
  std::uint64_t launches = 0;
  for (std::uint64_t at = 1; at == 1 || at <= launches; ++at) {
    Computing computing;
    Fixture fixture(computing);
    if (at == 1) {  // all launches, once
      Computing other;
      Fixture whole(other);
      whole.submit(0);
      whole.submit(100, 3);
      whole.submit(200);
      whole.run();
      launches = whole.losing.launches();
      ASSERT_GT(launches, 10u);
    }
    fixture.losing.lose_at(at);
    const std::vector<std::shared_ptr<TestSink>> all = {fixture.submit(0), fixture.submit(100, 3),
                                                        fixture.submit(200)};
    fixture.run();
    std::size_t lost = 0;
    for (const auto& heard : all) {
      ASSERT_TRUE(heard->ended()) << "launch " << at;
      for (const TestSink::Given& given : heard->answers) {
        if (given.reason != FinishReason::kLost) continue;
        ++lost;
        ASSERT_EQ(given.message, "GPU: launching a graph: it fell off the bus");
      }
    }
    ASSERT_GT(lost, 0u) << "launch " << at;
    ASSERT_TRUE(fixture.core.is_lost());
    ASSERT_LE(fixture.losing.launches(), at + 1) << "nothing is launched on a lost device";
    const kv::BlockPool& pool = fixture.cache.pool();
    ASSERT_EQ(pool.blocks_free() + pool.blocks_idle(), pool.blocks()) << "launch " << at;
    const auto late = fixture.submit(0);
    ASSERT_TRUE(late->ended());
    ASSERT_EQ(late->answers[0].reason, FinishReason::kLost);
    ASSERT_FALSE(fixture.core.step());
  }
}

TEST(LostDevice, EveryRequestEndsWhicheverLaunchItIs) { lose_at_every_launch<NullRunner>(); }
TEST(LostDevice, EveryRequestEndsAlsoOneLaunchAhead) { lose_at_every_launch<AheadRunner>(); }

TEST(LostDevice, TokensOfALostLaunchAreNotPublished) {
  NullRunner computing;
  Fixture fixture(computing);
  fixture.losing.lose_at(1);
  fixture.submit(0);
  fixture.run();
  std::vector<TokenId> prompt;
  for (std::uint32_t i = 0; i < 60; ++i) prompt.push_back(TokenId(i));
  const kv::CacheScope scope = fixture.cache.scope("lost", "", {}, kv::OwnerId(0)).value();
  EXPECT_EQ(fixture.cache.match(scope, prompt, kv::MatchEnd::kWholeBlock).nodes.size(), 0u);
}

}  // namespace
}  // namespace pagoda::engine
