#include "loadgen/load_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "loadgen/summary.h"

namespace pagoda::loadgen {
namespace {

constexpr double kNanoseconds = 1e-9;
constexpr double kPlotMilliseconds = 1e3;
constexpr int kTicks = 6;

using Slices = std::array<std::vector<float>, kLoadSlices>;

std::optional<float> ttft_s(const Outcome& outcome) {
  if (!outcome.answered()) return std::nullopt;
  return static_cast<float>(static_cast<double>(outcome.first_ns - outcome.sent_ns) * kNanoseconds);
}

std::optional<float> mean_itl_s(const Outcome& outcome) {
  if (!outcome.answered() || outcome.output_tokens < 2) return std::nullopt;
  const auto gaps = static_cast<double>(outcome.output_tokens - 1);
  return static_cast<float>(static_cast<double>(outcome.last_ns - outcome.first_ns) * kNanoseconds /
                            gaps);
}

template <class Latency>
Slices slices_of(const LoadResult& result, double slice_s, const Latency& latency) {
  Slices slices;
  for (const Outcome& outcome : result.outcomes) {
    const std::optional<float> seconds = latency(outcome);
    if (!seconds) continue;
    const double at = static_cast<double>(outcome.sent_ns) * kNanoseconds / slice_s;
    slices[std::min(static_cast<std::size_t>(std::max(at, 0.0)), kLoadSlices - 1)].push_back(
        *seconds);
  }
  return slices;
}

terminal::PlotPanel panel_of(const char* title, const Slices& slices, double slice_s) {
  terminal::PlotPanel panel = {
      .title = title,
      .x_title = "seconds since the load began",
      .y_title = "ms",
      .ticks = {},
      .lines = {{.name = "p50", .points = {}}, {.name = "p95", .points = {}}},
      .linear_x = true};
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double x = slice_s * kLoadSlices * tick / kTicks;
    panel.ticks.push_back({.x = x, .text = fmt::format("{:.3g}", x)});
  }
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].empty()) continue;
    const Distribution times = distribution_of(slices[i]);
    const double middle = slice_s * (static_cast<double>(i) + 0.5);
    panel.lines[0].points.push_back({.x = middle, .y = times.p50 * kPlotMilliseconds});
    panel.lines[1].points.push_back({.x = middle, .y = times.p95 * kPlotMilliseconds});
  }
  return panel;
}

}  // namespace

std::vector<terminal::PlotPanel> plot_load(const LoadResult& result) {
  std::int64_t last_sent_ns = 0;
  for (const Outcome& outcome : result.outcomes) {
    last_sent_ns = std::max(last_sent_ns, outcome.sent_ns);
  }
  const double seconds = std::max(static_cast<double>(last_sent_ns) * kNanoseconds, 1e-3);
  const double slice_s = seconds / kLoadSlices;
  return {panel_of("TTFT of requests by when they were sent", slices_of(result, slice_s, ttft_s),
                   slice_s),
          panel_of("Mean ITL of requests by when they were sent",
                   slices_of(result, slice_s, mean_itl_s), slice_s)};
}

}  // namespace pagoda::loadgen
