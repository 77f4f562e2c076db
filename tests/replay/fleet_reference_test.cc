// Fleets against plain references: the replay of one cache, the arithmetic of queues, and a
// simulator that goes on by milliseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "replay/fleet_trace.h"
#include "replay/run.h"
#include "test_data.h"

namespace pagoda::replay {
namespace {

using ::testing::ElementsAre;

Trace recorded() {
  return read_trace(test_data() + "/traces/conversation_1000.jsonl.gz", {}).value();
}

TEST(FleetReferenceTest, OneServerIsTheReplayUnderEveryPolicyAndSize) {
  const Trace trace = recorded();
  const BlockNumbers numbers(trace);
  for (const kv::EvictionPolicy* const policy : kv::eviction_policies()) {
    for (const std::uint64_t blocks : {1u, 50u, 400u, 4000u}) {
      const HitCounts alone =
          run_cache(trace, {policy, blocks, 512, nullptr}, numbers.unique(), {});
      for (const RouterKind router : {RouterKind::kRoundRobin, RouterKind::kExact}) {
        FleetRun run;
        run.policy = policy;
        run.capacity_blocks = blocks;
        run.router = router;
        run.costs.decode_tokens = 0;  // nobody holds a block while others are computed
        const HitCounts fleet = run_fleet(trace, numbers, run, {}).value().hits;
        EXPECT_EQ(fleet.blocks_hit, alone.blocks_hit) << policy->name << " " << blocks;
        EXPECT_EQ(fleet.tokens_hit, alone.tokens_hit);
        EXPECT_EQ(fleet.tokens, alone.tokens);
      }
    }
  }
}

// Prompts of 2, 2, 1 and 3 blocks, 10 ms a block, nothing in common:
//   at 0 runs to 20; at 5 waits, runs 20 to 40; at 12 waits, runs 40 to 50; at 90 runs to 120.
TEST(FleetReferenceTest, AQueueWithKnownArrivalsIsTheScheduleByHand) {
  const Trace trace = trace_of({{.at_ms = 0, .ids = {1, 2}},
                                {.at_ms = 5, .ids = {3, 4}},
                                {.at_ms = 12, .ids = {5}},
                                {.at_ms = 90, .ids = {6, 7, 8}}});
  FleetRun run = milliseconds(10);
  run.capacity_blocks = 100;
  const FleetResult one = run_made(trace, run);
  EXPECT_THAT(one.ttft_ns, ElementsAre(20'000'000, 35'000'000, 38'000'000, 30'000'000));
  EXPECT_EQ(one.span_ns, 120'000'000);
  EXPECT_EQ(one.servers.front().busy_ns, 80'000'000);
  // Two servers: the first has 0 to 20 and 20 to 30 (it came at 12), the second 5 to 25, 90 to 120.
  run.servers = 2;
  const FleetResult two = run_made(trace, run);
  EXPECT_THAT(two.ttft_ns, ElementsAre(20'000'000, 20'000'000, 18'000'000, 30'000'000));
}

// Times of waiting by Lindley's recursion; of equal services at random arrivals their mean is near
// the mean of M/D/1: load x service / (2 x (1 - load)).
TEST(FleetReferenceTest, WaitsOfPoissonArrivalsAreThoseOfAQueueWithOneService) {
  constexpr std::int64_t kServiceNs = 10'000'000;
  std::vector<PlainRequest> requests;
  for (std::uint32_t i = 0; i < 40'000; ++i) {
    requests.push_back({.at_ms = i * 20, .ids = {i}});  // half of the server's time
  }
  const Trace trace = trace_of(requests);
  FleetRun run = milliseconds(10);
  run.capacity_blocks = 4;
  run.arrivals.poisson = true;
  for (const std::uint64_t seed : {1u, 2u}) {
    run.seed = seed;
    const FleetResult result = run_made(trace, run);
    const double mean_ms = std::accumulate(result.ttft_ns.begin(), result.ttft_ns.end(), 0.0) /
                           static_cast<double>(result.ttft_ns.size()) * 1e-6;
    EXPECT_NEAR(mean_ms, 10 + 0.5 * 10 / (2 * (1 - 0.5)), 0.25);
    for (const std::int64_t ttft_ns : result.ttft_ns) ASSERT_GE(ttft_ns, kServiceNs);
  }
}

TEST(FleetReferenceTest, FleetsAreThoseOfThePlainSimulator) {
  std::uint64_t waited_for_room = 0;
  std::uint64_t from_host = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto draw = [&](std::uint64_t n, std::uint64_t index) {
      return random_bits(seed, 2, index) % n;
    };
    PlainFleetRules rules = {.servers = 1 + draw(4, 0),
                             .capacity = 3 + draw(30, 1),
                             .compute_ms = std::array{1, 2, 4, 8}[draw(4, 2)],
                             .host = {},
                             .host_ms = std::array{1, 2, 5}[draw(3, 3)],
                             .exact = draw(2, 4) == 1};
    if (draw(2, 5) == 1) rules.host = 2 + draw(60, 6);
    const std::vector<PlainRequest> requests = random_requests(seed, 60, 1 + draw(40, 7));
    const PlainFleetResult plain = PlainFleet(requests, rules).run();

    const std::vector<FleetTier> tiers(
        rules.host ? 1 : 0, {.kind = FleetTierKind::kHost,
                             .capacity = {.text = "", .blocks_set = rules.host.value_or(1)}});
    FleetRun run = milliseconds(rules.compute_ms);
    run.servers = static_cast<std::uint32_t>(rules.servers);
    run.capacity_blocks = rules.capacity;
    run.costs.host_bytes = 1000.0 / static_cast<double>(rules.host_ms);
    run.router = rules.exact ? RouterKind::kExact : RouterKind::kRoundRobin;
    run.tiers = tiers;
    const FleetResult fleet = run_made(trace_of(requests), run);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(fleet.ttft_ns[i], plain.ttft_ms[i] * 1'000'000) << "seed " << seed << ", " << i;
    }
    ASSERT_EQ(fleet.hits.blocks_hit, plain.found) << seed;
    ASSERT_EQ(fleet.sources.tiers[0], plain.from_host) << seed;
    ASSERT_EQ(fleet.traffic[0].blocks_read, plain.host_read) << seed;
    ASSERT_EQ(fleet.traffic[0].blocks_written, plain.host_written) << seed;
    waited_for_room += plain.waited_for_room;
    from_host += plain.from_host;
  }
  EXPECT_GT(waited_for_room, 100u) << "no fleet was short of room";
  EXPECT_GT(from_host, 100u) << "no fleet read from its host";
}

}  // namespace
}  // namespace pagoda::replay
