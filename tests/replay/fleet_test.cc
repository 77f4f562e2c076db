// pagoda replay --servers: what holds of every fleet, tiers, and the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "replay/fleet/arrival_times.h"
#include "replay/fleet/block_lru.h"
#include "replay/fleet/fleet_report.h"
#include "replay/fleet/transfer_path.h"
#include "replay/fleet_trace.h"
#include "replay/replay_command.h"

namespace pagoda::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

constexpr std::size_t kHost = static_cast<std::size_t>(FleetTierKind::kHost);
constexpr std::size_t kShared = static_cast<std::size_t>(FleetTierKind::kShared);
constexpr std::size_t kPeer = static_cast<std::size_t>(FleetTierKind::kPeer);

FleetTier tier(FleetTierKind kind, std::uint64_t blocks = 1) {
  return {.kind = kind, .capacity = {.text = "", .blocks_set = blocks}};
}

double mean_ttft(const FleetResult& result) {
  return std::accumulate(result.ttft_ns.begin(), result.ttft_ns.end(), 0.0) /
         static_cast<double>(result.ttft_ns.size());
}

TEST(FleetTest, EveryTokenIsFoundOnceOrComputedWhateverTheFleet) {
  const std::vector<std::vector<FleetTier>> all_tiers = {
      {},
      {tier(FleetTierKind::kHost, 40)},
      {tier(FleetTierKind::kPeer)},
      {tier(FleetTierKind::kHost, 10), tier(FleetTierKind::kDisk, 60),
       tier(FleetTierKind::kShared, 200), tier(FleetTierKind::kPeer)},
      {tier(FleetTierKind::kPeer), tier(FleetTierKind::kShared, 30)}};
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Trace trace = trace_of(random_requests(seed, 200, 12));
    std::uint64_t asked = 0;
    for (const TraceRequest& request : trace.requests) asked += request.input_tokens;
    for (const std::vector<FleetTier>& tiers : all_tiers) {
      for (std::size_t router = 0; router < kRouterNames.size(); ++router) {
        for (const std::uint32_t servers : {1u, 2u, 7u}) {
          FleetRun run = milliseconds(2);
          run.servers = servers;
          run.router = static_cast<RouterKind>(router);
          run.capacity_blocks = 8 + seed * 5;
          run.tiers = tiers;
          run.costs.host_bytes = 4000;
          run.costs.disk_bytes = 1500;
          run.costs.network_bytes = 1000;
          run.policy = kv::eviction_policies()[seed % kv::eviction_policies().size()];
          const FleetResult result = run_made(trace, run);
          std::uint64_t requests = 0;
          std::uint64_t computed = 0;
          for (const ServerLoad& server : result.servers) {
            requests += server.requests;
            computed += server.tokens_computed;
            EXPECT_LE(server.busy_ns, result.span_ns);
          }
          EXPECT_EQ(requests, trace.requests.size());
          EXPECT_EQ(computed, result.sources.computed);
          EXPECT_EQ(result.sources.all(), asked);
          EXPECT_EQ(result.hits.tokens, asked);
          EXPECT_EQ(result.hits.tokens - result.hits.tokens_hit, computed);
          for (std::size_t kind = 0; kind < kFleetTiers; ++kind) {
            EXPECT_LE(result.sources.tiers[kind], result.traffic[kind].blocks_read)
                << "a token came that was not read";
          }
        }
      }
    }
  }
}

TEST(FleetTest, ARunIsAFunctionOfItsSeed) {
  const Trace trace = trace_of(random_requests(3, 300, 10));
  FleetRun run = milliseconds(2);
  run.servers = 5;
  run.capacity_blocks = 20;
  run.arrivals.poisson = true;
  run.router = RouterKind::kSticky;
  const std::vector<std::int64_t> one = run_made(trace, run).ttft_ns;
  EXPECT_EQ(run_made(trace, run).ttft_ns, one);
  run.seed = 1;
  EXPECT_NE(run_made(trace, run).ttft_ns, one);
}

// Conversations of so many turns, all users in turn.
std::vector<PlainRequest> users(std::uint32_t count, std::uint32_t turns, std::int64_t gap_ms) {
  std::vector<PlainRequest> requests;
  std::vector<Ids> open(count);
  std::uint32_t fresh = 0;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (Ids& ids : open) {
      for (int i = 0; i < 4; ++i) ids.push_back(fresh++);
      requests.push_back(
          {.at_ms = static_cast<std::int64_t>(requests.size()) * gap_ms, .ids = ids});
    }
  }
  return requests;
}

TEST(FleetTest, ExactIsNeverWorseThanRoundRobinWhereConversationsMeetOtherServersByTurns) {
  for (const std::uint32_t servers : {1u, 2u, 3u, 8u}) {
    for (const std::uint32_t people : {1u, 3u, 8u, 13u}) {
      for (const std::int64_t gap_ms : {0, 3, 20, 200}) {
        const Trace trace = trace_of(users(people, 6, gap_ms));
        FleetRun run = milliseconds(5);
        run.servers = servers;
        run.capacity_blocks = 400;
        const FleetResult turns = run_made(trace, run);
        run.router = RouterKind::kExact;
        const FleetResult exact = run_made(trace, run);
        EXPECT_LE(mean_ttft(exact), mean_ttft(turns)) << servers << " " << people << " " << gap_ms;
        EXPECT_GE(exact.hits.blocks_hit, turns.hits.blocks_hit)
            << servers << " " << people << " " << gap_ms;
      }
    }
  }
}

TEST(FleetTest, ASharedStoreGivesEveryServerWhatAnyOfThemComputed) {
  const Trace trace = trace_of(users(3, 6, 1000));
  const BlockNumbers numbers(trace);
  std::uint64_t repeated = 0;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) repeated += numbers.known(i);
  const std::vector<FleetTier> tiers = {tier(FleetTierKind::kShared, 1000)};
  FleetRun run = milliseconds(5);
  run.servers = 4;
  run.capacity_blocks = 400;
  run.tiers = tiers;
  run.costs.network_bytes = 1000;
  const FleetResult with = run_made(trace, run);
  EXPECT_EQ(with.hits.blocks_hit, repeated);
  EXPECT_EQ(with.traffic[kShared].blocks_written, numbers.unique());
  EXPECT_EQ(with.sources.tiers[kShared], with.traffic[kShared].blocks_read);
  EXPECT_GT(with.sources.tiers[kShared], 0u);
  // Slower than computing: nobody waits for it.
  run.costs.network_bytes = 150;
  const FleetResult slow = run_made(trace, run);
  EXPECT_EQ(slow.traffic[kShared].blocks_read, 0u);
  run.tiers = {};
  EXPECT_EQ(slow.ttft_ns, run_made(trace, run).ttft_ns);
}

TEST(FleetTest, PeersGiveWhatTheirCachesStillHave) {
  // Of two servers the second is asked for what the first computed: 4 blocks, read in 4 ms instead
  // of computed in 20, and 4 new ones.
  const Trace trace = trace_of(users(1, 2, 100));
  const std::vector<FleetTier> tiers = {tier(FleetTierKind::kPeer)};
  FleetRun run = milliseconds(5);
  run.servers = 2;
  run.tiers = tiers;
  run.costs.network_bytes = 1000;
  run.capacity_blocks = 100;
  const FleetResult has = run_made(trace, run);
  EXPECT_THAT(has.ttft_ns, ElementsAre(20'000'000, 24'000'000));
  EXPECT_EQ(has.sources.tiers[kPeer], 4u);
  EXPECT_EQ(has.traffic[kPeer].blocks_written, 0u);
  run.capacity_blocks = 2;  // two of them were kept
  const FleetResult kept = run_made(trace, run);
  EXPECT_THAT(kept.ttft_ns, ElementsAre(20'000'000, 2'000'000 + 30'000'000));
  run.servers = 1;  // no peer
  run.capacity_blocks = 100;
  EXPECT_EQ(run_made(trace, run).traffic[kPeer].blocks_read, 0u);
}

TEST(FleetTest, ATierIsAskedForWhatThoseBeforeItLack) {
  // Host memory keeps 2 of the 4 blocks, the store all; the cache keeps 1 of them behind block 9.
  const Trace trace = trace_of({{.at_ms = 0, .ids = {1, 2, 3, 4}},
                                {.at_ms = 1000, .ids = {9, 10, 11, 12}},
                                {.at_ms = 2000, .ids = {1, 2, 3, 4}}});
  const std::vector<FleetTier> tiers = {tier(FleetTierKind::kHost, 6),
                                        tier(FleetTierKind::kShared, 100)};
  FleetRun run = milliseconds(5);
  run.capacity_blocks = 4;
  run.tiers = tiers;
  run.costs.host_bytes = 1000;
  run.costs.network_bytes = 500;
  const FleetResult result = run_made(trace, run);
  // The host gives 2 in 2 ms and the store the others in 4 ms, beside each other; then one step.
  EXPECT_EQ(result.sources.tiers[kHost], 2u);
  EXPECT_EQ(result.sources.tiers[kShared], 2u);
  EXPECT_THAT(result.ttft_ns, ElementsAre(20'000'000, 20'000'000, 9'000'000));
}

TEST(FleetTest, WritesThatWouldWaitForMoreThanASecondAreLeftOut) {
  const Trace trace = trace_of(users(5, 1, 20));
  const std::vector<FleetTier> tiers = {tier(FleetTierKind::kHost, 100)};
  FleetRun run = milliseconds(5);
  run.capacity_blocks = 100;
  run.tiers = tiers;
  run.costs.host_bytes = 5;  // 4 blocks in 0.8 s; they come every 0.02
  const FleetResult result = run_made(trace, run);
  EXPECT_EQ(result.traffic[kHost].blocks_written, 8u);
  EXPECT_EQ(result.traffic[kHost].blocks_left_out, 12u);
}

TEST(FleetTest, TransfersShareTheirLinks) {
  TransferLink mine{.bytes_per_second = 1000};
  TransferLink theirs{.bytes_per_second = 100};
  TransferPath path(&mine, &theirs, 7);
  EXPECT_EQ(path.arrival_ns(0, 10), 100'000'007);
  EXPECT_EQ(path.send(0, 10), 100'000'007);
  EXPECT_EQ(mine.free_ns, 10'000'000);
  EXPECT_EQ(theirs.free_ns, 100'000'000);
  EXPECT_EQ(path.backlog_ns(40'000'000), 60'000'000);
  EXPECT_EQ(path.send(40'000'000, 1), 110'000'007);
  EXPECT_EQ(TransferPath(&mine).arrival_ns(200'000'000, 5), 205'000'000);
  TransferLink endless;
  EXPECT_EQ(TransferPath(&endless).arrival_ns(3, 1e12), 3);
}

TEST(FleetTest, OfAUsedPromptTheTailLeavesFirst) {
  BlockLru blocks(3);
  const std::vector<std::uint32_t> first = {1, 2};
  const std::vector<std::uint32_t> second = {1, 5};
  blocks.use(first);
  blocks.use(second);
  EXPECT_EQ(blocks.found(first), 2u);
  const std::vector<std::uint32_t> longer = {7, 8, 9, 10};
  blocks.use(std::span(longer).first(1));  // 2 leaves, the least recently used
  EXPECT_EQ(blocks.found(first), 1u);
  blocks.use(longer);
  EXPECT_EQ(blocks.found(longer), 3u);
  EXPECT_EQ(blocks.size(), 3u);
}

TEST(FleetTest, PercentilesAreByNearestRank) {
  std::vector<std::int64_t> times;
  for (std::int64_t i = 10; i >= 1; --i) times.push_back(i * 1'000'000'000);
  const TtftSummary ten = summarise_ttft(times);
  EXPECT_DOUBLE_EQ(ten.mean_s, 5.5);
  EXPECT_DOUBLE_EQ(ten.p50_s, 5);
  EXPECT_DOUBLE_EQ(ten.p90_s, 9);
  EXPECT_DOUBLE_EQ(ten.p99_s, 10);
  EXPECT_DOUBLE_EQ(ten.max_s, 10);
  EXPECT_DOUBLE_EQ(summarise_ttft({}).p99_s, 0);
}

TEST(FleetTest, BalanceComparesTheFullestServerWithTheMean) {
  FleetResult result;
  result.servers = {{.requests = 1, .tokens_computed = 30, .busy_ns = 50},
                    {.requests = 3, .tokens_computed = 10, .busy_ns = 10}};
  result.span_ns = 100;
  const FleetBalance balance = summarise_balance(result);
  EXPECT_DOUBLE_EQ(balance.busy_mean, 0.3);
  EXPECT_DOUBLE_EQ(balance.busy_max, 0.5);
  EXPECT_DOUBLE_EQ(balance.tokens_max_over_mean, 1.5);
  EXPECT_DOUBLE_EQ(balance.requests_max_over_mean, 1.5);
}

TEST(FleetTest, ALoadIsAShareOfAllServersTime) {
  // 12 tokens of 5 ms are 60 ms of work. Half of three servers' time: they come within 40 ms.
  const Trace trace = trace_of(users(3, 1, 200));
  FleetRun run = milliseconds(5);
  run.servers = 3;
  run.arrivals.load = 0.5;
  const FleetSchedule schedule = schedule_arrivals(trace, run).value();
  EXPECT_DOUBLE_EQ(schedule.speed, 10);
  EXPECT_EQ(schedule.arrivals.back().time_ns, 40'000'000);
}

TEST(FleetTest, RequestsComeByTheirTimesWhateverTheOrderOfTheFile) {
  Trace trace =
      trace_of({{.at_ms = 50, .ids = {1}}, {.at_ms = 20, .ids = {2}}, {.at_ms = 50, .ids = {3}}});
  FleetRun run = milliseconds(5);
  run.arrivals.speed = 2;
  const FleetSchedule schedule = schedule_arrivals(trace, run).value();
  std::vector<std::pair<std::uint32_t, std::int64_t>> seen;
  for (const FleetArrival& arrival : schedule.arrivals) {
    seen.emplace_back(arrival.request, arrival.time_ns);
  }
  EXPECT_THAT(seen,
              ElementsAre(std::pair(1u, 0), std::pair(0u, 15'000'000), std::pair(2u, 15'000'000)));
}

// Two conversations by turns, 1,000 ms apart, in blocks of 512 tokens.
std::string turns_trace() {
  std::string text;
  int at = 0;
  for (const char* const ids : {"1, 2", "11, 12", "1, 2, 3", "11, 12, 13", "1, 2, 3, 4", "11"}) {
    const int blocks = static_cast<int>(std::count(ids, ids + std::strlen(ids), ',')) + 1;
    text += "{\"timestamp\": " + std::to_string(at) +
            ", \"input_length\": " + std::to_string(blocks * 512) +
            ", \"output_length\": 2, \"hash_ids\": [" + ids + "]}\n";
    at += 1000;
  }
  return write_file("turns.jsonl", text);
}

TEST(FleetCommandTest, JsonSaysWhatEachFleetFoundAndMoved) {
  const Replayed replayed =
      run_replay({turns_trace(), "--servers", "1,3", "--router", "round-robin,exact", "--capacity",
                  "100%", "--tier", "shared:100%", "--prefill-rate", "1024", "--json"});
  ASSERT_EQ(replayed.status, 0) << replayed.err;
  const Json json = replayed.json();
  ASSERT_EQ(json["results"].size(), 4u);
  // Of 15 blocks 2 + 2 + 3 + 1 are repeated.
  for (const Json& result : json["results"]) {
    EXPECT_DOUBLE_EQ(result["blocks_hit_rate"], 8. / 15) << result;
    EXPECT_EQ(result["tokens"]["computed"], 7 * 512);
  }
  const Json& turns = json["results"][2];
  EXPECT_EQ(turns["servers"], 3);
  EXPECT_EQ(turns["router"], "round-robin");
  // 1 2 3 goes to the third server, 11 12 13 to the first, 1 2 3 4 to the second, 11 to the third:
  // each meets a server that has nothing of it.
  EXPECT_EQ(turns["tokens"]["memory"], 0);
  EXPECT_EQ(turns["tokens"]["shared"], 8 * 512);
  EXPECT_EQ(turns["traffic"]["shared"]["bytes_read"], 8. * 512 * 131072);
  EXPECT_EQ(turns["traffic"]["shared"]["bytes_written"], 7. * 512 * 131072);
  EXPECT_EQ(json["results"][3]["tokens"]["shared"], 0) << "exact goes where the blocks are";
  EXPECT_DOUBLE_EQ(json["results"][0]["ttft_ms"]["max"], 1000);
  EXPECT_EQ(json["costs"]["prefill_tokens_per_s"], 1024);
  EXPECT_EQ(json["traces"][0]["unique_blocks"], 7);
}

TEST(FleetCommandTest, TheTableAndThePlotHaveEveryRouterAndSize) {
  const std::string trace = turns_trace();
  const Replayed replayed = run_replay({trace, "--servers", "1,2", "--router", "all", "--tier",
                                        "host:50%", "--tier", "peer", "--plot", trace + ".svg"});
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  for (const char* const text :
       {"round-robin", "sticky", "cache-aware", "exact", "TTFT p50", "host GB", "peer GB",
        "6 requests, 15 blocks, 7 of them different"}) {
    EXPECT_THAT(replayed.out, HasSubstr(text));
  }
  std::ostringstream svg;
  svg << std::ifstream(trace + ".svg").rdbuf();
  for (const char* const text : {"token hit rate", "TTFT p90, seconds", ">cache-aware<"}) {
    EXPECT_THAT(svg.str(), HasSubstr(text));
  }
}

TEST(FleetCommandTest, WrongFlagsAreUsageErrors) {
  const std::string trace = turns_trace();
  const auto refused = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), trace);
    const Replayed replayed = run_replay(words);
    EXPECT_EQ(replayed.status, 2) << ::testing::PrintToString(words) << replayed.out;
    EXPECT_THAT(replayed.err, HasSubstr(message));
    EXPECT_THAT(replayed.out, IsEmpty());
  };
  refused({"--router", "exact"}, "--router: only with --servers");
  refused({"--prefill-rate", "5"}, "--prefill-rate: only with --servers");
  refused({"--servers", "2", "--router", "fast"},
          "--router: 'fast' is not one of all, round-robin");
  refused({"--servers", "0"}, "--servers");
  refused({"--servers", "4097"}, "--servers");
  refused({"--servers", "2", "--policy", "belady"}, "belady knows the future of one cache");
  refused({"--servers", "2", "--curve"}, "--curve: only of one cache");
  refused({"--servers", "2", "--tier", "tape:1GiB"}, "--tier: 'tape:1GiB' is no tier");
  refused({"--servers", "2", "--tier", "host"}, "'host' has no size");
  refused({"--servers", "2", "--tier", "peer:1GiB"}, "has a size, and peers are caches");
  refused({"--servers", "2", "--tier", "host:1GiB,2GiB"}, "has several sizes");
  refused({"--servers", "2", "--tier", "host:x"}, "--capacity: 'x' is not a share");
  refused({"--servers", "2", "--tier", "host:1GiB", "--tier", "host:2GiB"},
          "'host' is there twice");
  refused({"--servers", "2", "--load", "0.5", "--speed", "2"}, "--speed");
  refused({"--servers", "2", "--network-bandwidth", "fast"}, "--network-bandwidth");
  const std::string still = write_file("still.jsonl", trace_line(4, "1") + trace_line(4, "2"));
  const Replayed replayed = run_replay({still, "--servers", "2", "--load", "0.5"});
  EXPECT_EQ(replayed.status, 2);
  EXPECT_THAT(replayed.err, HasSubstr("have one timestamp, so that there is no rate of theirs"));
}

TEST(FleetCommandTest, CachesThatTogetherAreTooLargeAreRefused) {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += trace_line(4, std::to_string(i));
  const std::string trace = write_file("wide.jsonl", text);
  const Replayed replayed = run_replay({trace, "--servers", "4096", "--capacity", "100%"});
  EXPECT_EQ(replayed.status, 2);
  EXPECT_THAT(replayed.err, HasSubstr("--capacity: 9,000 blocks on each of 4096 servers are more "
                                      "than 33,554,432 in all"));
}

TEST(FleetCommandTest, TracesWithoutBlocksAreServed) {
  for (const std::string& text : {std::string(), trace_line(0, "")}) {
    const Replayed replayed =
        run_replay({write_file("empty.jsonl", text), "--servers", "2", "--router", "all"});
    EXPECT_EQ(replayed.status, 0) << replayed.err;
  }
}

}  // namespace
}  // namespace pagoda::replay
