#include "loadgen/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace pagoda::loadgen {
namespace {

float seconds(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<float>(seconds_between(from_ns, to_ns));
}

// Returns the nearest-rank percentile of samples in ascending order, at least one.
double nearest_rank(const std::vector<float>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& count) {
  if (count) sum = sum.value_or(0) + *count;
}

double rate(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

Distribution distribution_of(std::vector<float> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  double sum = 0;
  for (const float sample : samples) sum += sample;
  return {.count = samples.size(),
          .mean = sum / static_cast<double>(samples.size()),
          .p50 = nearest_rank(samples, 0.50),
          .p95 = nearest_rank(samples, 0.95),
          .p99 = nearest_rank(samples, 0.99),
          .max = samples.back()};
}

bool meets_slo(const Outcome& outcome, const Slo& slo) {
  if (!outcome.answered()) return false;
  const double first_s = seconds_between(outcome.scheduled_ns, outcome.first_ns);
  if (slo.ttft_s && first_s > *slo.ttft_s) return false;
  if (!slo.itl_s || outcome.output_tokens < 2) return true;
  const double streamed_s = seconds_between(outcome.first_ns, outcome.last_ns);
  return streamed_s <= *slo.itl_s * static_cast<double>(outcome.output_tokens - 1);
}

double fairness(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

Summary summarise(const LoadResult& result, const Slo& slo) {
  Summary summary;
  summary.requests = result.outcomes.size();
  summary.seconds = result.seconds;
  std::vector<float> ttft_scheduled, ttft_sent, e2e_scheduled, e2e_sent, late;
  std::vector<double> speeds;
  std::set<std::uint64_t> answers;
  for (const Outcome& outcome : result.outcomes) {
    ++summary.by_kind[static_cast<std::size_t>(outcome.kind)];
    late.push_back(seconds(outcome.scheduled_ns, outcome.sent_ns));
    if (outcome.kind == OutcomeKind::kStatus) ++summary.by_status[outcome.status];
    if (!outcome.answered()) {
      summary.errors += outcome.kind == OutcomeKind::kUnfinished ? 0 : 1;
      continue;
    }
    ttft_scheduled.push_back(seconds(outcome.scheduled_ns, outcome.first_ns));
    ttft_sent.push_back(seconds(outcome.sent_ns, outcome.first_ns));
    e2e_scheduled.push_back(seconds(outcome.scheduled_ns, outcome.end_ns));
    e2e_sent.push_back(seconds(outcome.sent_ns, outcome.end_ns));
    summary.output_tokens += outcome.output_tokens;
    add(summary.prompt_tokens, outcome.prompt_tokens);
    add(summary.cached_tokens, outcome.cached_tokens);
    answers.insert(outcome.answer_hash);
    summary.good += meets_slo(outcome, slo) ? 1 : 0;
    const double taken_s = seconds_between(outcome.sent_ns, outcome.end_ns);
    if (taken_s > 0) speeds.push_back(static_cast<double>(outcome.output_tokens) / taken_s);
  }
  const std::uint64_t answered = ttft_scheduled.size();
  summary.answers_different = answers.size();
  summary.stream_fairness = fairness(speeds);
  summary.ttft_scheduled = distribution_of(std::move(ttft_scheduled));
  summary.ttft_sent = distribution_of(std::move(ttft_sent));
  summary.e2e_scheduled = distribution_of(std::move(e2e_scheduled));
  summary.e2e_sent = distribution_of(std::move(e2e_sent));
  summary.late = distribution_of(std::move(late));
  summary.itl = distribution_of(result.itl_s);
  summary.requests_per_s = rate(answered, summary.seconds);
  summary.output_tokens_per_s = rate(summary.output_tokens, summary.seconds);
  summary.goodput_per_s = rate(summary.good, summary.seconds);
  return summary;
}

}  // namespace pagoda::loadgen
