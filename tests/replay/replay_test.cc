// pagoda replay through its command line. Hit rates are worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "kv/evict/policy.h"
#include "replay/replay_command.h"
#include "test_data.h"

namespace pagoda::replay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// Blocks of 4 tokens: 13 touches, 47 tokens, 6 different blocks.
//   a  1 2 3   4 + 4 + 2 tokens
//   b  1 2 4   4 + 4 + 4
//   c  5 6     4 + 4
//   d  1 2 3   4 + 4 + 2
//   e  5 6     4 + 3
std::string small_trace() {
  return write_file("small.jsonl", trace_line(10, "1, 2, 3") + trace_line(12, "1, 2, 4") +
                                       trace_line(8, "5, 6") + trace_line(10, "1, 2, 3") +
                                       trace_line(7, "5, 6"));
}

std::string guide_text(const std::string& name) {
  std::ifstream file(source_folder() + "/docs/guide/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Replay, HelpAndGuideNameEveryPolicy) {
  const std::string help = run_replay({"--help"}).out;
  const std::string guide = guide_text("replay.md");
  for (const kv::EvictionPolicy* const policy : kv::eviction_policies()) {
    EXPECT_THAT(help, ::testing::ContainsRegex("[ ,]" + std::string(policy->name) + "[,;]"));
    EXPECT_THAT(guide, HasSubstr("`" + std::string(policy->name) + "`"));
  }
  EXPECT_THAT(help, HasSubstr("belady;"));
}

struct Rates {
  double blocks;
  double tokens;
  bool operator==(const Rates&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const Rates& rates) {
  return stream << rates.blocks << " " << rates.tokens;
}

Rates rates_of(const Json& json) { return {json["blocks_hit_rate"], json["tokens_hit_rate"]}; }

std::vector<Rates> replay_rates(std::vector<std::string> words) {
  words.emplace_back("--json");
  const Replayed replayed = run_replay(words);
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_THAT(replayed.err, IsEmpty());
  std::vector<Rates> rates;
  const Json json = replayed.json();
  for (const Json& result : json["results"]) rates.push_back(rates_of(result));
  return rates;
}

std::vector<Rates> small_rates(const std::string& policy, const std::string& capacities) {
  return replay_rates(
      {small_trace(), "--policy", policy, "--capacity", capacities, "--block-tokens", "4"});
}

TEST(ReplayTest, LeastRecentlyUsed) {
  // 1 block: a leaves 1; b hits it; then c, d, e each find the other's first block.
  // 2: a leaves 1 2; b hits both.
  // 4: b hits 1 2; c evicts 3 and 4; d hits 1 2 and evicts 6; e hits 5.
  // 6: nothing is evicted.
  EXPECT_THAT(small_rates("lru", "1,2,4,6"),
              ElementsAre(Rates{1. / 13, 4. / 47}, Rates{2. / 13, 8. / 47},
                          Rates{5. / 13, 20. / 47}, Rates{7. / 13, 25. / 47}));
}

TEST(ReplayTest, BeladyKeepsWhatIsUsedSoonest) {
  // 1: block 1 stays until d: hits in b and d.
  // 4: b hits 1 2; after c, 1 2 3 (used by d) and 5 (used by e) stay; d hits 3, e hits 1.
  // 5: e hits 5 6 as well, so that nothing is missed that came before.
  EXPECT_THAT(
      small_rates("belady", "1,4,5"),
      ElementsAre(Rates{2. / 13, 8. / 47}, Rates{6. / 13, 22. / 47}, Rates{7. / 13, 25. / 47}));
}

TEST(ReplayTest, FifoForgetsWhatCameFirstAndLruWhatWasUsedFirst) {
  // 2 blocks: the third request hits 1. Then lru evicts 2 and the last request hits 1 again; fifo
  // evicts 1. Belady does as well with one block: it bypasses 2 and 3.
  const std::string trace =
      write_file("order.jsonl", trace_line(4, "1") + trace_line(4, "2") + trace_line(4, "1") +
                                    trace_line(4, "3") + trace_line(4, "1"));
  const auto run = [&](const char* policy, const char* capacity) {
    return replay_rates({trace, "--policy", policy, "--capacity", capacity, "--block-tokens", "4"});
  };
  EXPECT_THAT(run("lru", "1,2"), ElementsAre(Rates{0, 0}, Rates{2. / 5, 2. / 5}));
  EXPECT_THAT(run("fifo", "1,2"), ElementsAre(Rates{0, 0}, Rates{1. / 5, 1. / 5}));
  EXPECT_THAT(run("belady", "1,2"), ElementsAre(Rates{2. / 5, 2. / 5}, Rates{2. / 5, 2. / 5}));
}

TEST(ReplayTest, TheTailOfAChainLeavesBeforeItsHead) {
  // 3 blocks: the second request needs one; 3 goes, and the third request hits 1 2. In order of
  // age, fifo would have lost 1.
  const std::string trace = write_file(
      "chain.jsonl", trace_line(12, "1, 2, 3") + trace_line(4, "9") + trace_line(12, "1, 2, 3"));
  for (const char* const policy : {"lru", "fifo"}) {
    EXPECT_THAT(replay_rates({trace, "--policy", policy, "--capacity", "3", "--block-tokens", "4"}),
                ElementsAre(Rates{2. / 7, 8. / 28}));
  }
}

TEST(ReplayTest, ARequestLongerThanTheCacheCountsItsHitsAndLeavesItsPrefix) {
  // 2 blocks: the second request hits 1 2 of 1 2 3 4 and leaves them; the third hits 1 2 whole.
  const std::string trace = write_file(
      "long.jsonl", trace_line(8, "1, 2") + trace_line(16, "1, 2, 3, 4") + trace_line(8, "1, 2") +
                        trace_line(16, "7, 8, 9, 10") + trace_line(12, "7, 8, 9"));
  for (const char* const policy : {"lru", "fifo"}) {
    EXPECT_THAT(replay_rates({trace, "--policy", policy, "--capacity", "2", "--block-tokens", "4"}),
                ElementsAre(Rates{6. / 15, 24. / 60}));
  }
}

TEST(ReplayTest, TokensWeighBlocksAndNeverLessThanNothing) {
  // 5 tokens in three blocks of 4 are 4 + 1 + 0; with blocks of 512 the first has them all; with
  // blocks of 1 each has one, and what is beyond the ids is not counted.
  const std::string trace =
      write_file("short.jsonl", trace_line(5, "1, 2, 3") + trace_line(5, "1, 2, 4"));
  const auto run = [&](const char* block_tokens) {
    return replay_rates(
        {trace, "--policy", "lru", "--capacity", "9", "--block-tokens", block_tokens});
  };
  EXPECT_THAT(run("4"), ElementsAre(Rates{2. / 6, 5. / 10}));
  EXPECT_THAT(run("512"), ElementsAre(Rates{2. / 6, 5. / 10}));
  EXPECT_THAT(run("1"), ElementsAre(Rates{2. / 6, 2. / 6}));
  EXPECT_THAT(run("2"), ElementsAre(Rates{2. / 6, 4. / 10}));
}

// What running caches of these sizes say of themselves under every policy; of s3fifo, whose chains
// are more than a sample shows (docs/notes/hit_rate_curve.md), nothing unless all of them is
// followed.
TEST(ReplayTest, TheLiveCurveIsWithinTwoPointsOfTheReplay) {
  for (const char* const trace : {"sessions", "conversation_1000"}) {
    const Json json = run_replay({test_data() + "/traces/" + std::string(trace) + ".jsonl.gz",
                                  "--policy", "lru,fifo,lfu,slru,s3fifo,arc,ttl,cost,continuation",
                                  "--capacity", "2.1%,3%,5%,10%,20%,50%,100%", "--curve", "--json"})
                          .json();
    const Json& points = json["sampled"]["points"];
    EXPECT_LT(json["sampled"]["sampling_rate"], 1) << "the trace was to be sampled";
    ASSERT_EQ(points.size(), 9u * 7u);
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Json& result = json["results"][i];
      EXPECT_EQ(points[i]["policy"], result["policy"]);
      EXPECT_EQ(points[i]["capacity_blocks"], result["capacity_blocks"]);
      if (points[i]["blocks_hit_rate"].is_null()) {
        EXPECT_EQ(points[i]["policy"], "s3fifo");
        ++unknown;
        continue;
      }
      EXPECT_NEAR(points[i]["blocks_hit_rate"], result["blocks_hit_rate"], 0.02)
          << trace << " " << points[i]["policy"] << " " << points[i]["capacity"];
    }
    EXPECT_GT(unknown, 0u);
  }
}

TEST(ReplayTest, OfAShortTraceTheLiveCurveIsTheReplay) {
  const std::string trace = small_trace();
  const auto run = [&](const char* flag) {
    return run_replay({trace, "--policy", "lru", "--capacity", "1,2,4,6", flag}).out;
  };
  EXPECT_THAT(run("--curve"),
              HasSubstr("lru, sampled             0.0769   0.1538   0.3846   0.5385"));
  EXPECT_THAT(run("--json"), Not(HasSubstr("sampled")));
}

TEST(ReplayTest, AnIdBelowAnotherPrefixIsAnotherBlock) {
  const std::string trace =
      write_file("trace.jsonl", trace_line(8, "1, 2") + trace_line(8, "3, 2") + trace_line(8, "2"));
  const Json json = run_replay({trace, "--capacity", "100%", "--json"}).json();
  EXPECT_EQ(json["unique_blocks"], 5);
  EXPECT_EQ(rates_of(json["infinite"]), (Rates{0, 0}));
  for (const Json& result : json["results"]) EXPECT_EQ(rates_of(result), (Rates{0, 0}));
}

TEST(ReplayTest, JsonHasOneShapeAndTheOrderAsked) {
  const Replayed replayed = run_replay({small_trace(), "--policy", "belady,lru", "--capacity",
                                        "50%,1", "--block-tokens", "4", "--json"});
  EXPECT_EQ(replayed.status, 0);
  const auto result = [](const char* policy, const char* capacity, int blocks, double hit,
                         double tokens) {
    return Json{{"policy", policy},
                {"capacity", capacity},
                {"capacity_blocks", blocks},
                {"blocks_hit_rate", hit / 13},
                {"tokens_hit_rate", tokens / 47}};
  };
  // 3 blocks, belady: b hits 1 2, after c 1 2 3 stay for d. lru: b hits 1 2, and c leaves 5 6 1.
  const Json expected = {
      {"results", Json::array({result("belady", "50%", 3, 5, 18), result("belady", "1", 1, 2, 8),
                               result("lru", "50%", 3, 3, 12), result("lru", "1", 1, 1, 4)})},
      {"infinite", {{"blocks_hit_rate", 7. / 13}, {"tokens_hit_rate", 25. / 47}}},
      {"requests", 5},
      {"blocks", 13},
      {"unique_blocks", 6},
      {"malformed_lines", 0},
      {"block_tokens", 4}};
  EXPECT_EQ(replayed.json().dump(1), expected.dump(1));
}

TEST(ReplayTest, AllMeansEveryPolicyAndSixSharesAreTheDefault) {
  const Json json = run_replay({small_trace(), "--json"}).json();
  std::vector<std::string> asked;
  for (const Json& result : json["results"]) {
    asked.push_back(result["policy"].get<std::string>() + " " +
                    result["capacity"].get<std::string>());
  }
  std::vector<std::string> expected;
  for (const char* const policy :
       {"lru", "fifo", "lfu", "slru", "s3fifo", "arc", "ttl", "cost", "continuation", "belady"}) {
    for (const char* const share : {"1%", "2%", "5%", "10%", "25%", "50%"}) {
      expected.push_back(std::string(policy) + " " + share);
    }
  }
  EXPECT_EQ(asked, expected);
  EXPECT_EQ(run_replay({small_trace(), "--json", "--policy", "all"}).json(), json);
}

TEST(ReplayTest, CapacitiesInAllForms) {
  // Of 6 blocks; a block of 4 tokens of 64 bytes has 256 bytes.
  const Json json =
      run_replay({small_trace(), "--policy", "lru", "--block-tokens", "4", "--bytes-per-token",
                  "64", "--json", "--capacity",
                  "1%,33.3%, 33.4%,50%,100%,250%,7,18446744073709551615,1KiB,1000B,1.5kb,256 B"})
          .json();
  std::vector<std::uint64_t> blocks;
  for (const Json& result : json["results"]) blocks.push_back(result["capacity_blocks"]);
  EXPECT_THAT(blocks, ElementsAre(1, 1, 2, 3, 6, 15, 7, UINT64_MAX, 4, 3, 5, 1));
  EXPECT_EQ(json["results"][2]["capacity"], "33.4%");
  EXPECT_EQ(rates_of(json["results"][7]), rates_of(json["infinite"]));
}

TEST(ReplayTest, TheTableShowsBeladyAndTheInfiniteCacheBesideWhatWasAsked) {
  const Replayed replayed =
      run_replay({small_trace(), "--policy", "lru", "--capacity", "4,100%", "--block-tokens", "4"});
  EXPECT_EQ(replayed.status, 0);
  // 5, 6 and 7 of 13 blocks; 20, 22 and 25 of 47 tokens.
  EXPECT_THAT(replayed.out,
              AllOf(HasSubstr("5 requests, 13 blocks of 4 tokens, 6 of them different\n"),
                    HasSubstr("cache blocks            4        6\n"
                              "block hit rate          4     100%\n"
                              "  lru              0.3846   0.5385\n"
                              "  belady           0.4615   0.5385\n"
                              "  infinite         0.5385   0.5385\n"),
                    HasSubstr("token hit rate          4     100%\n"
                              "  lru              0.4255   0.5319\n"
                              "  belady           0.4681   0.5319\n"
                              "  infinite         0.5319   0.5319\n"),
                    ::testing::ContainsRegex("lru: [0-9,]+ block touches a second\n")));
  EXPECT_THAT(replayed.out, Not(HasSubstr("fifo")));
}

TEST(ReplayTest, EachOfSeveralTracesHasItsOwnCache) {
  const std::string one = write_file("one.jsonl", trace_line(4, "1") + trace_line(4, "1"));
  const std::string two = write_file("two.jsonl", trace_line(4, "1") + trace_line(4, "2, 3"));
  const Json json =
      run_replay({one, two, "--policy", "lru", "--capacity", "100%", "--json"}).json();
  ASSERT_EQ(json["results"].size(), 2U);
  EXPECT_EQ(json["results"][0]["trace"], one);
  EXPECT_EQ(json["results"][0]["capacity_blocks"], 1);
  EXPECT_EQ(rates_of(json["results"][0]), (Rates{1. / 2, 4. / 8}));
  EXPECT_EQ(json["results"][1]["trace"], two);
  EXPECT_EQ(json["results"][1]["capacity_blocks"], 3);
  EXPECT_EQ(rates_of(json["results"][1]), (Rates{0, 0}));
  EXPECT_EQ(rates_of(json["infinite"]), (Rates{1. / 5, 4. / 16})) << "of both together";
  EXPECT_EQ(json["requests"], 4);
  EXPECT_EQ(json["unique_blocks"], 4);
  EXPECT_EQ(json["traces"][1]["trace"], two);
  EXPECT_EQ(json["traces"][1]["unique_blocks"], 3);
  EXPECT_THAT(run_replay({one, two}).out, AllOf(HasSubstr(one + "\n"), HasSubstr(two + "\n")));
}

TEST(ReplayTest, TracesWithoutBlocksHaveNoHits) {
  for (const std::string& text : {std::string(), std::string("\n\n"), trace_line(0, "")}) {
    const std::string trace = write_file("empty.jsonl", text);
    const Replayed replayed = run_replay({trace, "--json", "--plot", trace + ".svg"});
    EXPECT_EQ(replayed.status, 0) << replayed.err;
    EXPECT_EQ(rates_of(replayed.json()["infinite"]), (Rates{0, 0}));
    EXPECT_EQ(replayed.json()["results"][0]["capacity_blocks"], 1);
    EXPECT_EQ(run_replay({trace}).status, 0);
  }
}

TEST(ReplayTest, MalformedLinesAreCountedAndTheExitStatusSaysSo) {
  const std::string trace =
      write_file("bad.jsonl", trace_line(4, "1") + "oops\n" + trace_line(4, "1") + "{}\n");
  const Replayed replayed =
      run_replay({trace, "--policy", "lru", "--capacity", "1", "--block-tokens", "4", "--json"});
  EXPECT_EQ(replayed.status, 1);
  EXPECT_EQ(replayed.err, "warning: " + trace + ":2: not a JSON value: line skipped\n" +
                              "warning: " + trace + ":4: no input_length: line skipped\n" +
                              "error: 2 malformed lines were skipped\n");
  const Json json = replayed.json();
  EXPECT_EQ(json["malformed_lines"], 2);
  EXPECT_EQ(json["requests"], 2);
  EXPECT_EQ(rates_of(json["results"][0]), (Rates{1. / 2, 1. / 2}));
}

TEST(ReplayTest, AFileWithoutOneRequestIsAnErrorAndNoTable) {
  const std::string trace = write_file("none.jsonl", "oops\n{}\n");
  const Replayed replayed = run_replay({trace});
  EXPECT_EQ(replayed.status, 1);
  EXPECT_THAT(replayed.err, HasSubstr("error: " + trace + ": no line of it is a request"));
  EXPECT_THAT(replayed.out, IsEmpty());
}

TEST(ReplayTest, FilesThatCannotBeReadFail) {
  const std::string folder = ::testing::TempDir();
  for (const std::string& path : {std::string("/does/not/exist.jsonl"), folder}) {
    const Replayed replayed = run_replay({small_trace(), path, "--json"});
    EXPECT_EQ(replayed.status, 1) << path;
    EXPECT_THAT(replayed.err, HasSubstr("error: cannot read '" + path + "': "));
    EXPECT_THAT(replayed.out, IsEmpty());
  }
}

TEST(ReplayTest, WrongFlagsAreUsageErrors) {
  const std::string trace = small_trace();
  const auto refused = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), trace);
    const Replayed replayed = run_replay(words);
    EXPECT_EQ(replayed.status, 2) << ::testing::PrintToString(words);
    EXPECT_THAT(replayed.err, HasSubstr(message));
    EXPECT_THAT(replayed.out, IsEmpty());
  };
  for (const char* const policy : {"mru", "", "lru,", "LRU", "lru,,fifo"}) {
    refused(
        {"--policy", policy},
        "' is not one of all, lru, fifo, lfu, slru, s3fifo, arc, ttl, cost, continuation, belady");
  }
  for (const char* const capacity :
       {"0", "0%", "-1", "-1%", "1001%", "5%%", "%", "", "1%,", "1.5", "1e3", "1.1234567%", "abc",
        "0x10", "18446744073709551616", ".5%", "5.%", "nan%"}) {
    refused({"--capacity", capacity}, "' is not a share of the blocks (5%");
  }
  refused({"--capacity", "1GiB"}, "--capacity: the size '1GiB' needs --bytes-per-token");
  refused({"--capacity", "255B", "--bytes-per-token", "64", "--block-tokens", "4"},
          "--capacity: '255B' is less than one block of 256 bytes");
  for (const char* const tokens : {"0", "-1", "1.5", "x", "", "4294967296"}) {
    refused({"--block-tokens", tokens}, std::string("--block-tokens: '") + tokens +
                                            "' is not a whole number from 1 to 4294967295");
  }
  for (const char* const bytes : {"0", "-1", "x", "18014398509481984"}) {
    refused({"--bytes-per-token", bytes},
            std::string("--bytes-per-token: '") + bytes + "' is not a size from 1 to ");
  }
  EXPECT_EQ(run_replay({}).status, 2) << "no trace";
}

std::string plot_of(const std::string& trace, std::vector<std::string> words) {
  const std::string path = trace + ".svg";
  words.insert(words.begin(), {trace, "--plot", path});
  EXPECT_EQ(run_replay(words).status, 0);
  std::ostringstream svg;
  svg << std::ifstream(path).rdbuf();
  return svg.str();
}

int count_of(const std::string& part, const std::string& text) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(ReplayTest, ThePlotHasALineForEveryPolicyAndNamesItsAxes) {
  const std::string trace =
      write_file("a<b&c.jsonl", trace_line(8, "1, 2") + trace_line(8, "1, 2"));
  const std::string svg = plot_of(trace, {"--policy", "fifo,lru", "--capacity", "50%,2"});
  EXPECT_EQ(count_of("<polyline ", svg), 3) << "fifo, lru and belady beside them";
  EXPECT_EQ(count_of("<circle ", svg), 6);
  for (const char* const text : {"fifo", "lru", "belady", "infinite cache", "block hit rate", "50%",
                                 "2", "cache capacity (logarithmic)", "0.00", "0.50"}) {
    EXPECT_EQ(count_of(">" + std::string(text) + "</text>", svg), 1) << text;
  }
  EXPECT_EQ(count_of("a&lt;b&amp;c.jsonl</text>", svg), 1);
}

TEST(ReplayTest, ThePlotOfOneCapacityIsAPointInTheMiddle) {
  // The field is 510 wide and begins at 70; 1 of 2 blocks is hit, the height of the field.
  const std::string trace = write_file("one.jsonl", trace_line(4, "1") + trace_line(4, "1"));
  const std::string svg = plot_of(trace, {"--policy", "belady", "--capacity", "3,3"});
  EXPECT_EQ(count_of("<circle cx='325.0' cy='44.0'", svg), 2) << svg;
  EXPECT_EQ(count_of(">3</text>", svg), 1) << "labels that would lie on each other are left out";
}

TEST(ReplayTest, APlotThatCannotBeWrittenFailsAfterTheAnswer) {
  const Replayed replayed = run_replay({small_trace(), "--plot", "/does/not/exist.svg"});
  EXPECT_EQ(replayed.status, 1);
  EXPECT_THAT(replayed.err, HasSubstr("--plot: cannot write '/does/not/exist.svg'"));
  EXPECT_THAT(replayed.out, HasSubstr("block hit rate"));
}

}  // namespace
}  // namespace pagoda::replay
