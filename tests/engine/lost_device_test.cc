// What computes is lost: requests end at once and say why, nobody hangs, nothing is published.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/core.h"
#include "engine/engine_desk.h"
#include "engine/losing_runner.h"
#include "engine/null_runner.h"

namespace pagoda::engine {
namespace {

struct Desk {
  explicit Desk(Runner& computing) : losing(computing) {}

  static CoreOptions options() {
    CoreOptions options;
    options.limits = {.vocabulary = 1000, .context_tokens = 400, .answers_max = 8};
    options.scheduler.sequences_max = 8;
    options.scheduler.batched_tokens_max = 32;
    options.space = "lost";
    return options;
  }
  std::shared_ptr<Heard> submit(std::uint32_t first, std::uint32_t answers = 1) {
    Request request;
    for (std::uint32_t i = 0; i < 60; ++i) request.prompt.push_back(TokenId(first + i));
    request.end.max_tokens = 20;
    request.sampling.n = answers;
    auto heard = std::make_shared<Heard>(answers);
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

// Every launch of three requests' life may be the one.
template <class Computing>
void lose_at_every_launch() {
  std::uint64_t launches = 0;
  for (std::uint64_t at = 1; at == 1 || at <= launches; ++at) {
    Computing computing;
    Desk desk(computing);
    if (at == 1) {  // the whole way, once
      Computing other;
      Desk whole(other);
      whole.submit(0);
      whole.submit(100, 3);
      whole.submit(200);
      whole.run();
      launches = whole.losing.launches();
      ASSERT_GT(launches, 10u);
    }
    desk.losing.lose_at(at);
    const std::vector<std::shared_ptr<Heard>> all = {desk.submit(0), desk.submit(100, 3),
                                                     desk.submit(200)};
    desk.run();
    std::size_t lost = 0;
    for (const auto& heard : all) {
      ASSERT_TRUE(heard->ended()) << "launch " << at;
      for (const Heard::Given& given : heard->answers) {
        if (given.reason != FinishReason::kLost) continue;
        ++lost;
        ASSERT_EQ(given.message, "GPU: launching a graph: it fell off the bus");
      }
    }
    ASSERT_GT(lost, 0u) << "launch " << at;
    ASSERT_TRUE(desk.core.is_lost());
    ASSERT_LE(desk.losing.launches(), at + 1) << "nothing is launched on a lost device";
    const kv::BlockPool& pool = desk.cache.pool();
    ASSERT_EQ(pool.blocks_free() + pool.blocks_idle(), pool.blocks()) << "launch " << at;
    const auto late = desk.submit(0);
    ASSERT_TRUE(late->ended());
    ASSERT_EQ(late->answers[0].reason, FinishReason::kLost);
    ASSERT_FALSE(desk.core.step());
  }
}

TEST(LostDevice, EveryRequestEndsWhicheverLaunchItIs) { lose_at_every_launch<NullRunner>(); }
TEST(LostDevice, EveryRequestEndsAlsoOneLaunchAhead) { lose_at_every_launch<AheadRunner>(); }

TEST(LostDevice, RowsOfALaunchThatWasLostAreNotPublished) {
  NullRunner computing;
  Desk desk(computing);
  desk.losing.lose_at(1);
  desk.submit(0);
  desk.run();
  std::vector<TokenId> prompt;
  for (std::uint32_t i = 0; i < 60; ++i) prompt.push_back(TokenId(i));
  const kv::Domain domain = desk.cache.domain("lost", "", {}, kv::OwnerId(0)).value();
  EXPECT_EQ(desk.cache.match_blocks(domain, prompt).nodes.size(), 0u);
}

}  // namespace
}  // namespace pagoda::engine
