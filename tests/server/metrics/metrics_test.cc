#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "server/metrics/exposition.h"
#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using Kind = Exposition::Kind;

constexpr std::array kBounds = {0.5, 1.0, 20.0};

TEST(Exposition, PlainTextCarriesTotalInNamesOfCounters) {
  Exposition page(ExpositionFormat::kText);
  page.set_shared_labels({{"engine", "0"}});
  page.counter("a:b", "Help.", std::uint64_t{3});
  page.gauge("c", "More.", 0.25);
  EXPECT_EQ(page.finish(),
            "# HELP a:b_total Help.\n"
            "# TYPE a:b_total counter\n"
            "a:b_total{engine=\"0\"} 3\n"
            "# HELP c More.\n"
            "# TYPE c gauge\n"
            "c{engine=\"0\"} 0.25\n");
}

TEST(Exposition, OpenMetricsCarriesItInSamplesOnlyAndEnds) {
  Exposition page(ExpositionFormat::kOpenMetrics);
  page.counter("a:b", "Help.", 3);
  EXPECT_EQ(page.finish(),
            "# HELP a:b Help.\n"
            "# TYPE a:b counter\n"
            "a:b_total 3\n"
            "# EOF\n");
}

TEST(Exposition, LabelsAndHelpAreEscaped) {
  Exposition page(ExpositionFormat::kText);
  page.begin(Kind::kGauge, "x", "a \\ and\na line");
  page.sample(1, {{"name", "C:\\ \"q\"\nend"}});
  EXPECT_EQ(page.finish(),
            "# HELP x a \\\\ and\\na line\n"
            "# TYPE x gauge\n"
            "x{name=\"C:\\\\ \\\"q\\\"\\nend\"} 1\n");
}

TEST(Exposition, AHistogramIsCumulativeAndItsBoundsAreCut) {
  Histogram histogram(kBounds);
  for (const double value : {0.25, 0.5, 0.75, 3.0, 100.0}) histogram.observe(value);
  Exposition page(ExpositionFormat::kText);
  page.histogram("h", "Help.", histogram);
  EXPECT_EQ(page.finish(),
            "# HELP h Help.\n"
            "# TYPE h histogram\n"
            "h_bucket{le=\"0.5\"} 2\n"
            "h_bucket{le=\"1.0\"} 3\n"
            "h_bucket{le=\"20.0\"} 4\n"
            "h_bucket{le=\"+Inf\"} 5\n"
            "h_count 5\n"
            "h_sum 104.5\n");
  Exposition cut(ExpositionFormat::kText);
  cut.histogram("h", "Help.", histogram, 5.0);
  EXPECT_THAT(cut.finish(), testing::Not(HasSubstr("20.0")));
}

TEST(Exposition, WhoNamesOpenMetricsGetsIt) {
  EXPECT_EQ(wanted_format(""), ExpositionFormat::kText);
  EXPECT_EQ(wanted_format("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), ExpositionFormat::kText);
  EXPECT_EQ(wanted_format("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
            ExpositionFormat::kOpenMetrics);
}

class MetricsTest : public testing::Test {
 protected:
  std::string read() {
    const HttpReply reply = fixture_.get("/metrics");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.content_type, "text/plain; version=0.0.4; charset=utf-8");
    return reply.body;
  }

  StoryFixture fixture_;
};

TEST_F(MetricsTest, MissesAreCountedByReason) {
  const Json body = {{"prompt", "Once upon a time there was a little girl"}, {"max_tokens", 1}};
  for (int i = 0; i < 3; ++i) fixture_.complete(body);
  const std::string text = read();
  EXPECT_THAT(text,
              testing::ContainsRegex("pagoda:prefix_misses_total[{][^}]*never_seen[^}]*[}] 1"));
  EXPECT_THAT(text, testing::ContainsRegex("pagoda:prefix_misses_total[{][^}]*none[^}]*[}] 2"));
  EXPECT_THAT(text,
              testing::ContainsRegex("pagoda:prefix_missed_tokens_total[{][^}]*evicted[^}]*[}] 0"));
}

TEST_F(MetricsTest, RequestsShowUnderTheNamesOfVllmAndOfLlamaCpp) {
  const Json body = {{"prompt", "Once upon a time"}, {"max_tokens", 5}, {"temperature", 0}};
  const std::uint64_t prompt = fixture_.complete(body)["usage"]["prompt_tokens"];
  fixture_.complete(body);
  const std::string page = read();
  const std::string labels = "{model_name=\"stories\",engine=\"0\"} ";
  const auto expect = [&](const std::string& name, std::uint64_t value) {
    EXPECT_THAT(page, HasSubstr("\n" + name + labels + std::to_string(value) + "\n"));
  };
  expect("vllm:prompt_tokens_total", 2 * prompt);
  expect("vllm:prompt_tokens_cached_total", prompt - 1);
  expect("vllm:prefix_cache_queries_total", 2 * prompt);
  expect("vllm:prefix_cache_hits_total", prompt - 1);
  expect("vllm:generation_tokens_total", 10);
  expect("vllm:time_to_first_token_seconds_count", 2);
  expect("vllm:inter_token_latency_seconds_count", 8);
  expect("vllm:request_generation_tokens_sum", 10);
  EXPECT_THAT(page, HasSubstr("finished_reason=\"length\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("\nllamacpp:tokens_predicted_total 10\n"));
  EXPECT_THAT(page, HasSubstr("\nllamacpp:prompt_tokens_total " + std::to_string(prompt + 1)));
}

// Dashboards take another start for another server, whose counters begin anew.
TEST_F(MetricsTest, TheStartOfTheProcessIsOneNumber) {
  const auto start = [&] {
    const std::string page = read();
    const std::size_t at = page.find("\nprocess_start_time_seconds");
    return page.substr(at, page.find('\n', at + 1) - at);
  };
  const std::string first = start();
  EXPECT_THAT(first, HasSubstr(" 1"));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(start(), first);
}

// Requests follow each other until one was seen: what is shown is up to 0.1 s old.
TEST_F(MetricsTest, TheMeanContextIsThatOfWhatRuns) {
  const std::string name =
      "\npagoda:running_context_tokens_mean{model_name=\"stories\",engine=\"0\"} ";
  const auto mean = [&] {
    const std::string page = read();
    const std::size_t at = page.find(name);
    return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size()));
  };
  EXPECT_EQ(mean(), 0) << "nothing runs";
  const std::vector<int> prompt(100, 5);
  std::atomic<bool> is_seen = false;
  const std::future<void> requests = std::async(std::launch::async, [&] {
    const Json body = {{"prompt", prompt}, {"max_tokens", 300}, {"ignore_eos", true}};
    while (!is_seen) fixture_.complete(body);
  });
  double seen = 0;
  while (seen == 0) seen = mean();
  is_seen = true;
  requests.wait();
  EXPECT_GE(seen, 100);
  EXPECT_LE(seen, 400);
}

// After a stop string the engine computes on until it is cancelled, but the choice ended by itself.
TEST_F(MetricsTest, AStopStringIsAStopNotAnAbort) {
  const Json reply = fixture_.complete(
      {{"prompt", "Once upon a time"}, {"max_tokens", 60}, {"temperature", 0}, {"stop", " "}});
  ASSERT_EQ(reply["choices"][0]["finish_reason"], "stop");
  const std::string page = read();
  EXPECT_THAT(page, HasSubstr("finished_reason=\"stop\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("finished_reason=\"abort\"} 0\n"));
}

TEST_F(MetricsTest, TheyAreThereWhileTheServerDrains) {
  fixture_.state().advance(Phase::kDraining);
  EXPECT_EQ(fixture_.get("/metrics").status, 200);
  EXPECT_EQ(fixture_.get("/v1/models").status, 503);
}

TEST_F(MetricsTest, ReadingThemTakesNoStepOfTheEngine) {
  fixture_.complete({{"prompt", "Once"}, {"max_tokens", 1}});
  std::promise<void> go_on;
  fixture_.engine().post([gate = go_on.get_future().share()](auto&) { gate.wait(); });
  for (int i = 0; i < 100; ++i) read();  // while the engine's thread is blocked
  go_on.set_value();
}

}  // namespace
}  // namespace pagoda::server
