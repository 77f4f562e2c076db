#include "loadgen/workload.h"

#include <gtest/gtest.h>

#include <set>

namespace pagoda::loadgen {
namespace {

std::vector<PlannedRequest> all_of(Workload& workload) {
  std::vector<PlannedRequest> requests;
  while (std::optional<PlannedRequest> planned = workload.next())
    requests.push_back(std::move(*planned));
  return requests;
}

std::vector<std::uint32_t> symbols_of(const LoadPrompt& prompt) {
  std::vector<std::uint32_t> all;
  for (const PromptPart& part : prompt) {
    all.insert(all.end(), part.symbols.begin(), part.symbols.end());
  }
  return all;
}

const WorkloadOptions kTen = {
    .arrivals = {.kind = ArrivalKind::kConstant, .rate = 4}, .count = 10, .seed = 3};

TEST(WorkloadTest, RandomPromptsHaveTheirLengthsAndShareNothing) {
  const auto workload = make_workload(
      kTen, RandomText{.input = Lengths::between(20, 30), .output = Lengths::between(2, 4)});
  const std::vector<PlannedRequest> requests = all_of(*workload);
  ASSERT_EQ(requests.size(), 10U);
  std::set<std::vector<std::uint32_t>> beginnings;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<std::uint32_t> symbols = symbols_of(requests[i].prompt);
    EXPECT_GE(symbols.size(), 20U);
    EXPECT_LE(symbols.size(), 30U);
    EXPECT_GE(requests[i].output_tokens, 2U);
    EXPECT_LE(requests[i].output_tokens, 4U);
    EXPECT_EQ(requests[i].scheduled_ns, static_cast<std::int64_t>(i) * 250'000'000);
    beginnings.insert({symbols.begin(), symbols.begin() + 4});
  }
  EXPECT_EQ(beginnings.size(), 10U);
}

TEST(WorkloadTest, TheSeedRepeatsAWorkload) {
  const auto texts = [](std::uint64_t seed) {
    WorkloadOptions options = kTen;
    options.seed = seed;
    std::vector<std::vector<std::uint32_t>> all;
    for (const PlannedRequest& planned : all_of(*make_workload(options, RandomText{}))) {
      all.push_back(symbols_of(planned.prompt));
    }
    return all;
  };
  EXPECT_EQ(texts(1), texts(1));
  EXPECT_NE(texts(1), texts(2));
}

TEST(WorkloadTest, PrefixesAreSharedByGroupAndEndingsByNobody) {
  WorkloadOptions options = kTen;
  options.count = 200;
  const auto workload = make_workload(
      options, SharedPrefixes{.groups = 3, .prefix_tokens = 40, .input = Lengths::between(8, 8)});
  std::set<std::vector<std::uint32_t>> prefixes;
  std::set<std::vector<std::uint32_t>> endings;
  for (const PlannedRequest& planned : all_of(*workload)) {
    const std::vector<std::uint32_t> symbols = symbols_of(planned.prompt);
    ASSERT_EQ(symbols.size(), 48U);
    prefixes.insert({symbols.begin(), symbols.begin() + 40});
    endings.insert({symbols.begin() + 40, symbols.end()});
  }
  EXPECT_EQ(prefixes.size(), 3U);
  EXPECT_EQ(endings.size(), 200U);
}

TEST(WorkloadTest, AConversationGrowsByTheRealAnswerAndATurn) {
  WorkloadOptions options = kTen;
  options.count = 2;
  const auto workload = make_workload(
      options, Conversations{.turns = 3, .think_s = 0.5, .input = Lengths::between(6, 6)});
  EXPECT_EQ(workload->count(), 6U);
  const std::vector<PlannedRequest> first = all_of(*workload);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[1].prompt.size(), 1U);
  const auto second = workload->follow(first[1], "yes", 7'000'000'000);
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(second->scheduled_ns, 7'000'000'000) << "the user thinks";
  ASSERT_EQ(second->prompt.size(), 3U);
  EXPECT_EQ(second->prompt[0].symbols, first[1].prompt[0].symbols);
  EXPECT_EQ(second->prompt[1].text, "yes");
  EXPECT_TRUE(second->prompt[1].from_server);
  EXPECT_EQ(second->prompt[2].symbols.size(), 6U);
  EXPECT_NE(second->prompt[2].symbols, first[1].prompt[0].symbols);
  const auto third = workload->follow(*second, "no", 9'000'000'000);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->prompt.size(), 5U);
  EXPECT_FALSE(workload->follow(*third, "well", 10'000'000'000).has_value()) << "three turns";
}

replay::Trace small_trace() {
  replay::Trace trace;
  trace.name = "trace";
  const std::vector<std::vector<std::uint32_t>> blocks = {{0, 1}, {0, 2}, {}};
  const std::vector<double> times_ms = {500, 700, 1700};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    trace.requests.push_back({.first = trace.ids.size(),
                              .blocks = blocks[i].size(),
                              .input_tokens = 150 + i,
                              .output_tokens = 20,
                              .timestamp_ms = times_ms[i]});
    for (const std::uint32_t id : blocks[i]) trace.ids.emplace_back(id);
    trace.ids.emplace_back(UINT32_MAX);
  }
  return trace;
}

TEST(WorkloadTest, ATraceKeepsItsTimesLengthsAndSharedBlocks) {
  const auto workload =
      make_workload(kTen, TraceReplay{.trace = small_trace(), .speed = 2, .block_tokens = 100});
  ASSERT_TRUE(workload.ok());
  const std::vector<PlannedRequest> requests = all_of(*workload.value());
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].scheduled_ns, 0);
  EXPECT_EQ(requests[1].scheduled_ns, 100'000'000);
  EXPECT_EQ(requests[2].scheduled_ns, 600'000'000);
  const auto one = symbols_of(requests[0].prompt);
  const auto two = symbols_of(requests[1].prompt);
  ASSERT_EQ(one.size(), 150U);
  ASSERT_EQ(two.size(), 151U);
  EXPECT_EQ(symbols_of(requests[2].prompt).size(), 152U);
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 100, two.begin())) << "block 0";
  EXPECT_NE(one[100], two[100]);
  EXPECT_EQ(requests[0].output_tokens, 20U);
}

TEST(WorkloadTest, ATraceIsScaledAsAWhole) {
  const auto workload =
      make_workload(kTen, TraceReplay{.trace = small_trace(), .block_tokens = 100, .scale = 0.1});
  const std::vector<PlannedRequest> requests = all_of(*workload.value());
  const auto one = symbols_of(requests[0].prompt);
  const auto two = symbols_of(requests[1].prompt);
  EXPECT_EQ(one.size(), 15U);
  EXPECT_EQ(requests[0].output_tokens, 2U);
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 10, two.begin()));
  EXPECT_NE(one[10], two[10]);
}

TEST(WorkloadTest, ATraceThatGoesBackInTimeIsRefused) {
  replay::Trace trace = small_trace();
  trace.requests[2].timestamp_ms = 600;
  const auto workload = make_workload(kTen, TraceReplay{.trace = trace});
  ASSERT_FALSE(workload.ok());
  EXPECT_NE(workload.error().message.find("request 3"), std::string::npos);
  EXPECT_FALSE(make_workload(kTen, TraceReplay{}).ok()) << "nothing in it";
}

}  // namespace
}  // namespace pagoda::loadgen
