#include "replay/replay_trace.h"

#include <filesystem>
#include <string>
#include <utility>

#include "replay/belady.h"
#include "replay/block_numbers.h"
#include "replay/curve.h"
#include "replay/run.h"

namespace pagoda::replay {
namespace {

PolicyCurve belady_curve(const TraceOracle& oracle, const ReplayQuestion& question,
                         const std::vector<std::uint64_t>& capacity_blocks) {
  PolicyCurve curve = {.policy = std::string(policy_name(nullptr)), .hits = {}};
  for (const std::uint64_t blocks : capacity_blocks) {
    curve.hits.push_back(oracle.belady(blocks, question.block_tokens));
  }
  return curve;
}

}  // namespace

std::string_view policy_name(const kv::EvictionPolicy* policy) {
  return policy == nullptr ? "belady" : policy->name;
}

TraceReport replay_trace(
    const Trace& trace, const ReplayQuestion& question, const Clock& clock,
    const std::function<void(std::uint64_t touches, std::uint64_t total)>& on_progress) {
  const BlockNumbers numbers(trace);
  const TraceOracle oracle(trace, numbers);
  TraceReport report = {.trace = trace.name,
                        .requests = trace.requests.size(),
                        .unique_blocks = numbers.unique(),
                        .lines_malformed = trace.lines_malformed,
                        .capacity_blocks = {},
                        .curves = {},
                        .beside = {},
                        .sampled = {},
                        .infinite = oracle.infinite(question.block_tokens)};
  for (const Capacity& capacity : question.capacities) {
    report.capacity_blocks.push_back(capacity.blocks(report.unique_blocks));
  }
  if (question.curve) {
    report.sampled =
        sample_curve(trace, report.capacity_blocks, question.block_tokens, report.unique_blocks);
  }
  const std::uint64_t touches_total =
      trace.touches() * question.policies.size() * question.capacities.size();
  std::uint64_t touches_before = 0;
  bool belady_asked = false;
  for (const kv::EvictionPolicy* const policy : question.policies) {
    if (policy == nullptr) {
      belady_asked = true;
      report.curves.push_back(belady_curve(oracle, question, report.capacity_blocks));
      touches_before += trace.touches() * question.capacities.size();
      continue;
    }
    PolicyCurve curve = {.policy = std::string(policy->name), .hits = {}};
    for (const std::uint64_t blocks : report.capacity_blocks) {
      const CacheRun run = {policy, blocks, question.block_tokens, nullptr};
      const std::int64_t start_ns = clock.now_ns();
      curve.hits.push_back(run_cache(trace, run, report.unique_blocks, [&](std::uint64_t touches) {
        if (on_progress) on_progress(touches_before + touches, touches_total);
      }));
      curve.seconds += seconds_between(start_ns, clock.now_ns());
      touches_before += trace.touches();
    }
    report.curves.push_back(std::move(curve));
  }
  if (!belady_asked) report.beside = belady_curve(oracle, question, report.capacity_blocks);
  return report;
}

terminal::PlotPanel plot_panel(const TraceReport& report, std::span<const Capacity> capacities) {
  const auto x_of = [&](std::size_t capacity) {
    return static_cast<double>(report.capacity_blocks[capacity]);
  };
  terminal::PlotPanel panel = {
      .title = std::filesystem::path(report.trace).filename().string(),
      .x_title = "cache capacity (logarithmic)",
      .y_title = "block hit rate",
      .ticks = {},
      .lines = {},
      .level = terminal::PlotLevel{report.infinite.blocks_hit_rate(), "infinite cache"}};
  for (std::size_t c = 0; c < capacities.size(); ++c) {
    panel.ticks.push_back({x_of(c), capacities[c].text});
  }
  const auto add_line = [&](const PolicyCurve& curve) {
    terminal::PlotLine line = {.name = curve.policy, .points = {}};
    for (std::size_t c = 0; c < curve.hits.size(); ++c) {
      line.points.push_back({x_of(c), curve.hits[c].blocks_hit_rate()});
    }
    panel.lines.push_back(std::move(line));
  };
  for (const PolicyCurve& curve : report.curves) add_line(curve);
  if (report.beside) add_line(*report.beside);
  return panel;
}

}  // namespace pagoda::replay
