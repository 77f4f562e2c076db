// Where routers send requests, asked of them alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "replay/fleet/conversations.h"
#include "replay/fleet/fleet_router.h"
#include "replay/fleet_trace.h"

namespace pagoda::replay {
namespace {

using ::testing::ElementsAre;

class StatedFleet final : public FleetState {
 public:
  std::vector<std::uint32_t> busy;
  std::vector<std::int64_t> ttft;
  std::vector<std::uint64_t> computed;

  std::uint32_t in_flight(std::uint32_t server) override { return busy.at(server); }
  std::int64_t expected_ttft_ns(std::uint32_t server) override { return ttft.at(server); }
  std::uint64_t tokens_computed(std::uint32_t server) override { return computed.at(server); }
};

FleetRun run_with(RouterKind router, std::uint32_t servers) {
  FleetRun run;
  run.router = router;
  run.servers = servers;
  run.block_tokens = 1;
  return run;
}

// A prompt whose first `shared` blocks are those of the prompt that begins at 0.
std::vector<std::uint32_t> prompt(std::uint32_t shared, std::uint32_t blocks, std::uint32_t from) {
  std::vector<std::uint32_t> ids(blocks);
  std::iota(ids.begin(), ids.begin() + shared, 0u);
  std::iota(ids.begin() + shared, ids.end(), from);
  return ids;
}

std::uint32_t choose(FleetRouter& router, const std::vector<std::uint32_t>& blocks,
                     FleetState& fleet, std::uint32_t conversation = 0) {
  return router.choose({.blocks = blocks, .tokens = blocks.size(), .conversation = conversation},
                       fleet);
}

TEST(FleetRouterTest, RoundRobinTakesTurns) {
  StatedFleet fleet;
  const auto router = make_fleet_router(run_with(RouterKind::kRoundRobin, 3));
  std::vector<std::uint32_t> chosen;
  for (int i = 0; i < 5; ++i) chosen.push_back(choose(*router, {1}, fleet));
  EXPECT_THAT(chosen, ElementsAre(0, 1, 2, 0, 1));
}

TEST(FleetRouterTest, OneMoreServerTakesItsShareOfConversationsAndMovesNoOther) {
  StatedFleet fleet;
  constexpr std::uint32_t kConversations = 4000;
  for (const bool by_block : {false, true}) {
    FleetRun eight = run_with(RouterKind::kSticky, 8);
    eight.routing.sticky_by_first_block = by_block;
    FleetRun nine = eight;
    nine.servers = 9;
    const auto before = make_fleet_router(eight);
    const auto after = make_fleet_router(nine);
    std::map<std::uint32_t, int> load;
    int moved = 0;
    for (std::uint32_t i = 0; i < kConversations; ++i) {
      const std::uint32_t key = by_block ? 7 : i;
      const std::uint32_t block = by_block ? i : 7;
      const std::uint32_t old_server = choose(*before, {block, 1}, fleet, key);
      const std::uint32_t new_server = choose(*after, {block, 2}, fleet, key);
      EXPECT_EQ(choose(*before, {block, 3}, fleet, key), old_server);
      ++load[old_server];
      if (new_server == old_server) continue;
      EXPECT_EQ(new_server, 8u);
      ++moved;
    }
    EXPECT_NEAR(moved, kConversations / 9, 60);
    for (const auto& [server, requests] : load) EXPECT_NEAR(requests, kConversations / 8, 80);
  }
}

// Seen of sglang-router 0.3.2 with its defaults and three workers, of which the one that had a
// prompt and another one held a request each: prompts that shared 0.10, 0.20 and 0.28 of it went to
// the idle worker, those that shared 0.33, 0.50 and 0.90 to the one that had it.
TEST(FleetRouterTest, CacheAwareFollowsAPrefixOfMoreThanThreeTenths) {
  StatedFleet fleet;
  fleet.busy = {0, 0, 0};
  const auto router = make_fleet_router(run_with(RouterKind::kCacheAware, 3));
  EXPECT_EQ(choose(*router, prompt(100, 100, 0), fleet), 0u);
  fleet.busy = {1, 1, 0};
  std::vector<std::uint32_t> chosen;
  std::uint32_t fresh = 1000;
  for (const std::uint32_t shared : {10u, 20u, 28u}) {
    chosen.push_back(choose(*router, prompt(shared, 100, fresh += 1000), fleet));
  }
  EXPECT_THAT(chosen, ElementsAre(2, 2, 2));
  // What they sent there counts for it now: server 2 has 28 blocks, and 0 the more of what follows.
  chosen.clear();
  for (const std::uint32_t shared : {33u, 50u, 90u}) {
    chosen.push_back(choose(*router, prompt(shared, 100, fresh += 1000), fleet));
  }
  EXPECT_THAT(chosen, ElementsAre(0, 0, 0));
}

TEST(FleetRouterTest, CacheAwareLeavesAPrefixWhereServersAreTooUneven) {
  const auto chosen = [](std::uint32_t busy0, std::uint32_t busy1) {
    StatedFleet fleet;
    fleet.busy = {0, 0};
    const auto router = make_fleet_router(run_with(RouterKind::kCacheAware, 2));
    EXPECT_EQ(choose(*router, {1, 2, 3}, fleet), 0u);
    fleet.busy = {busy0, busy1};
    return choose(*router, {1, 2, 3, 4}, fleet);
  };
  EXPECT_EQ(chosen(64, 0), 0u);  // differ by no more than 64
  EXPECT_EQ(chosen(65, 0), 1u);
  EXPECT_EQ(chosen(195, 130), 0u);  // by 65, and 1.5 times
  EXPECT_EQ(chosen(196, 130), 1u);
}

TEST(FleetRouterTest, CacheAwareForgetsWhatItsTreeHasNoRoomFor) {
  StatedFleet fleet;
  fleet.busy = {0, 0};
  FleetRun run = run_with(RouterKind::kCacheAware, 2);
  run.routing.tree_tokens_max = 4;
  const auto router = make_fleet_router(run);
  EXPECT_EQ(choose(*router, {1, 2}, fleet), 0u);
  EXPECT_EQ(choose(*router, {5, 6, 7}, fleet), 0u);  // 2 leaves, 1 stays: half of the first prompt
  fleet.busy = {1, 0};
  EXPECT_EQ(choose(*router, {1, 2, 3, 4}, fleet), 1u);
  EXPECT_EQ(choose(*router, {5, 6}, fleet), 0u);
}

TEST(FleetRouterTest, ExactTakesTheEarliestFirstTokenAndOfThoseTheServerThatDidLeast) {
  StatedFleet fleet;
  const auto router = make_fleet_router(run_with(RouterKind::kExact, 3));
  fleet.ttft = {30, 10, 20};
  fleet.computed = {0, 9, 0};
  EXPECT_EQ(choose(*router, {1}, fleet), 1u);
  fleet.ttft = {10, 10, 10};
  fleet.computed = {5, 3, 3};
  EXPECT_EQ(choose(*router, {1}, fleet), 1u);
}

TEST(FleetRouterTest, ARequestGoesOnWithTheConversationWhosePromptItRepeats) {
  // Behind a system prompt of blocks 1 2. Last blocks are partly filled: 11, 21 and so on are never
  // seen again.
  const Trace trace = trace_of({{.ids = {1, 2, 10, 11}},          // a
                                {.ids = {1, 2, 20, 21}},          // b: leaves a in its middle
                                {.ids = {1, 2, 10, 12, 13}},      // a: behind its last whole block
                                {.ids = {1, 2, 10, 12, 13, 14}},  // a: behind its whole prompt
                                {.ids = {1, 2}},                  // c: a system prompt alone
                                {.ids = {1, 2, 20, 22, 23}},      // b
                                {.ids = {1, 2, 20, 22, 23}},      // b: again
                                {.ids = {1, 2, 10, 99}},          // a: its second turn, edited
                                {.ids = {}},                      // d
                                {.ids = {1, 2, 10, 12, 13, 15}}});  // a
  const BlockNumbers numbers(trace);
  EXPECT_THAT(find_conversations(trace, numbers), ElementsAre(0, 1, 0, 0, 2, 1, 1, 0, 3, 0));
}

}  // namespace
}  // namespace pagoda::replay
