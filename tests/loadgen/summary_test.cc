#include "loadgen/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace pagoda::loadgen {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Outcome answered(std::int64_t due_ms, std::int64_t sent_ms, std::int64_t first_ms,
                 std::int64_t last_ms, std::uint64_t tokens) {
  return {.scheduled_ns = due_ms * kMs,
          .sent_ns = sent_ms * kMs,
          .first_ns = first_ms * kMs,
          .last_ns = last_ms * kMs,
          .end_ns = last_ms * kMs,
          .kind = OutcomeKind::kAnswered,
          .status = 200,
          .output_tokens = tokens};
}

TEST(SummaryTest, PercentilesAreNearestRanks) {
  std::vector<float> samples(200);
  std::iota(samples.begin(), samples.end(), 1.0F);  // 1 … 200
  std::reverse(samples.begin(), samples.end());
  const Distribution all = distribution_of(samples);
  EXPECT_EQ(all.count, 200U);
  EXPECT_EQ(all.p50, 100);
  EXPECT_EQ(all.p95, 190);
  EXPECT_EQ(all.p99, 198);
  EXPECT_EQ(all.max, 200);
  EXPECT_DOUBLE_EQ(all.mean, 100.5);
  const Distribution one = distribution_of({3.0F});
  EXPECT_EQ(one.p50, 3);
  EXPECT_EQ(one.p99, 3);
  const Distribution two = distribution_of({1.0F, 2.0F});
  EXPECT_EQ(two.p50, 1) << "half of them do not exceed it";
  EXPECT_EQ(two.p95, 2);
  EXPECT_EQ(distribution_of({}).count, 0U);
}

TEST(SummaryTest, TheSloIsOfTtftSinceScheduledAndMeanItl) {
  // Due at 0, sent at 60 ms, first token at 100 ms, ten more within 200 ms: 20 ms each.
  const Outcome outcome = answered(0, 60, 100, 300, 11);
  EXPECT_TRUE(meets_slo(outcome, {}));
  EXPECT_TRUE(meets_slo(outcome, {.ttft_s = 0.100}));
  EXPECT_FALSE(meets_slo(outcome, {.ttft_s = 0.099})) << "waiting to be sent counts";
  EXPECT_TRUE(meets_slo(outcome, {.ttft_s = 0.2, .itl_s = 0.0201}));
  EXPECT_FALSE(meets_slo(outcome, {.ttft_s = 0.2, .itl_s = 0.0199}));
  EXPECT_TRUE(meets_slo(answered(0, 0, 100, 100, 1), {.itl_s = 1e-9})) << "one token has no gap";
  Outcome failed = outcome;
  failed.kind = OutcomeKind::kShort;
  EXPECT_FALSE(meets_slo(failed, {}));
}

TEST(SummaryTest, FairnessIsJains) {
  EXPECT_DOUBLE_EQ(fairness({5, 5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(fairness({1, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(fairness({1, 3}), 0.8);  // 16 / (2 x 10)
  EXPECT_DOUBLE_EQ(fairness({}), 1);
}

TEST(SummaryTest, RatesErrorsAndGoodputAreOverTheWholeTime) {
  LoadResult result;
  result.seconds = 2;
  result.outcomes = {answered(0, 0, 10, 110, 11), answered(100, 150, 190, 290, 28)};
  result.outcomes[0].prompt_tokens = 8;
  result.outcomes[1].prompt_tokens = 12;
  result.outcomes[1].cached_tokens = 5;
  result.outcomes[1].answer_hash = 9;
  for (const auto& [kind, status] :
       std::vector<std::pair<OutcomeKind, int>>{{OutcomeKind::kStatus, 503},
                                                {OutcomeKind::kStatus, 503},
                                                {OutcomeKind::kStatus, 429},
                                                {OutcomeKind::kTimedOut, 0},
                                                {OutcomeKind::kUnfinished, 0}}) {
    Outcome failed = answered(0, 0, 1, 1, 99);
    failed.kind = kind;
    failed.status = status;
    result.outcomes.push_back(failed);
  }
  const Summary summary = summarise(result, {.ttft_s = 0.050});
  EXPECT_EQ(summary.requests, 7U);
  EXPECT_EQ(summary.errors, 4U) << "what was stopped is no error";
  EXPECT_EQ(summary.by_status.at(503), 2U);
  EXPECT_EQ(summary.by_status.at(429), 1U);
  EXPECT_EQ(summary.by_kind[static_cast<std::size_t>(OutcomeKind::kTimedOut)], 1U);
  EXPECT_DOUBLE_EQ(summary.requests_per_s, 1);
  EXPECT_EQ(summary.output_tokens, 39U);
  EXPECT_DOUBLE_EQ(summary.output_tokens_per_s, 19.5);
  EXPECT_DOUBLE_EQ(summary.goodput_per_s, 0.5) << "the second waited 90 ms";
  EXPECT_EQ(summary.prompt_tokens, 20U);
  EXPECT_EQ(summary.cached_tokens, 5U);
  EXPECT_EQ(summary.answers_different, 2U);
  EXPECT_FLOAT_EQ(static_cast<float>(summary.ttft_scheduled.max), 0.090F);
  EXPECT_FLOAT_EQ(static_cast<float>(summary.ttft_sent.max), 0.040F);
  EXPECT_FLOAT_EQ(static_cast<float>(summary.late.max), 0.050F);
  EXPECT_NEAR(summary.stream_fairness, 0.9, 1e-9) << "100 and 200 tokens a second";
}

}  // namespace
}  // namespace pagoda::loadgen
