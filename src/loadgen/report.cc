#include "loadgen/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/byte_size.h"

namespace pagoda::loadgen {
namespace {

using terminal::ReportValue;
using Json = nlohmann::ordered_json;

constexpr double kMillisecondsPerSecond = 1e3;

void add_times(terminal::BenchReport& report, const char* name, const Distribution& times) {
  if (times.count == 0) {
    report.add_row({name, std::uint64_t{0}, nullptr, nullptr, nullptr, nullptr, nullptr});
    return;
  }
  report.add_row({name, times.count, times.mean * kMillisecondsPerSecond,
                  times.p50 * kMillisecondsPerSecond, times.p95 * kMillisecondsPerSecond,
                  times.p99 * kMillisecondsPerSecond, times.max * kMillisecondsPerSecond});
}

// "2 of connection, 1 of http status 503"
std::string error_words(const Summary& summary) {
  std::string words;
  const auto add = [&](std::uint64_t count, const std::string& name) {
    if (count > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, name);
  };
  for (std::size_t i = 1; i < kOutcomeKinds; ++i) {
    const auto kind = static_cast<OutcomeKind>(i);
    if (kind == OutcomeKind::kUnfinished || kind == OutcomeKind::kStatus) continue;
    add(summary.by_kind[i], std::string(outcome_name(kind)));
  }
  for (const auto& [status, count] : summary.by_status) add(count, fmt::format("HTTP {}", status));
  return words;
}

Json errors_json(const Summary& summary) {
  Json errors = Json::object();
  for (std::size_t i = 1; i < kOutcomeKinds; ++i) {
    const auto kind = static_cast<OutcomeKind>(i);
    if (kind == OutcomeKind::kUnfinished || kind == OutcomeKind::kStatus) continue;
    errors[std::string(outcome_name(kind))] = summary.by_kind[i];
  }
  Json statuses = Json::object();
  for (const auto& [status, count] : summary.by_status) statuses[std::to_string(status)] = count;
  errors["http status"] = std::move(statuses);
  return errors;
}

void add_counts(terminal::BenchReport& report, const LoadResult& result, const Summary& summary) {
  const std::uint64_t answered = summary.by_kind[static_cast<std::size_t>(OutcomeKind::kAnswered)];
  report.add_detail("seconds", summary.seconds);
  report.add_detail("requests", summary.requests);
  report.add_detail("errors", summary.errors);
  report.add_detail("errors_by_kind", errors_json(summary));
  report.add_detail("unfinished",
                    summary.by_kind[static_cast<std::size_t>(OutcomeKind::kUnfinished)]);
  report.add_detail("connections", result.connections);
  report.add_detail("in_flight_peak", result.in_flight_peak);
  report.add_detail("stopped", result.stopped);
  report.add_figure(
      "answered", answered,
      fmt::format(
          "{} of {} requests answered in {:.2f} s, at most {} at once over {} connections{}",
          format_grouped(answered), format_grouped(summary.requests), summary.seconds,
          result.in_flight_peak, result.connections,
          result.stopped ? "; stopped before the end" : ""));
  const std::string words = error_words(summary);
  if (!words.empty()) {
    report.add_figure("first_error", result.first_failure,
                      fmt::format("errors: {}; the first: {}", words, result.first_failure));
  }
}

void add_tokens(terminal::BenchReport& report, const Summary& summary) {
  report.add_detail("output_tokens", summary.output_tokens);
  report.add_detail("requests_per_s", summary.requests_per_s);
  report.add_figure("output_tokens_per_s", summary.output_tokens_per_s,
                    fmt::format("{:.1f} requests/s, {:.1f} tokens/s", summary.requests_per_s,
                                summary.output_tokens_per_s));
  report.add_detail("prompt_tokens",
                    summary.prompt_tokens ? ReportValue(*summary.prompt_tokens) : ReportValue());
  report.add_detail("cached_tokens",
                    summary.cached_tokens ? ReportValue(*summary.cached_tokens) : ReportValue());
  if (summary.prompt_tokens && summary.cached_tokens && *summary.prompt_tokens > 0) {
    const double share =
        static_cast<double>(*summary.cached_tokens) / static_cast<double>(*summary.prompt_tokens);
    report.add_figure("cached_share", share,
                      fmt::format("{} prompt tokens, {:.1f} % of them cached",
                                  format_grouped(*summary.prompt_tokens), 100 * share));
  }
  report.add_detail("answers_different", summary.answers_different);
  report.add_detail("stream_fairness", summary.stream_fairness);
}

void add_goodput(terminal::BenchReport& report, const Summary& summary, const Slo& slo) {
  if (!slo.ttft_s && !slo.itl_s) return;
  std::string objective;
  if (slo.ttft_s) {
    objective += fmt::format("TTFT within {:.6g} ms", *slo.ttft_s * kMillisecondsPerSecond);
  }
  if (slo.itl_s) {
    objective += fmt::format("{}mean ITL within {:.6g} ms", objective.empty() ? "" : ", ",
                             *slo.itl_s * kMillisecondsPerSecond);
  }
  const double share = summary.requests == 0 ? 0
                                             : static_cast<double>(summary.good) /
                                                   static_cast<double>(summary.requests);
  report.add_detail("goodput_share", share);
  report.add_figure("goodput_requests_per_s", summary.goodput_per_s,
                    fmt::format("goodput {:.1f} requests/s, {:.1f} % of requests ({})",
                                summary.goodput_per_s, 100 * share, objective));
}

}  // namespace

terminal::BenchReport report_load(const LoadResult& result, const Summary& summary, const Slo& slo,
                                  bool open_loop) {
  terminal::BenchReport report("serve", {{"time", "ms"},
                                         {"count", "count"},
                                         {"mean_ms", "mean", 2},
                                         {"p50_ms", "p50", 2},
                                         {"p95_ms", "p95", 2},
                                         {"p99_ms", "p99", 2},
                                         {"max_ms", "max", 2}});
  report.set_row_title("first token, from when due", "TTFT (scheduled)");
  report.set_row_title("first token, from when sent", "TTFT (sent)");
  report.set_row_title("gap between tokens", "ITL");
  report.set_row_title("whole answer, from when due", "E2E latency (scheduled)");
  report.set_row_title("whole answer, from when sent", "E2E latency (sent)");
  add_times(report, "first token, from when due", summary.ttft_scheduled);
  add_times(report, "first token, from when sent", summary.ttft_sent);
  add_times(report, "gap between tokens", summary.itl);
  add_times(report, "whole answer, from when due", summary.e2e_scheduled);
  add_times(report, "whole answer, from when sent", summary.e2e_sent);
  add_times(report, "sent late by", summary.late);
  add_counts(report, result, summary);
  add_tokens(report, summary);
  add_goodput(report, summary, slo);
  const bool behind = open_loop && summary.late.p99 > kLateSeconds;
  report.add_detail("fell_behind", behind);
  if (behind) {
    report.add_figure(
        "late_p99_ms", summary.late.p99 * kMillisecondsPerSecond,
        fmt::format("THE SENDER FELL BEHIND: 1 % of requests were sent {:.1f} ms late or later; "
                    "times since scheduled include that",
                    summary.late.p99 * kMillisecondsPerSecond));
  }
  return report;
}

}  // namespace pagoda::loadgen
