#include "eval/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "terminal/plot.h"

namespace pagoda::eval {
namespace {

using terminal::ReportValue;

// Figures that only something other than the baseline has.
ReportValue compared(bool is_baseline, double value) {
  return is_baseline ? ReportValue() : ReportValue(value);
}

// A perplexity that was not measured is 0 and has an empty cell.
ReportValue measured_perplexity(const app::Perplexity& perplexity) {
  return perplexity.value > 0 ? ReportValue(perplexity.value) : ReportValue();
}

std::string task_line(const std::vector<EvalRow>& rows, std::size_t task) {
  const TaskScore& baseline = rows.front().measured.tasks[task];
  std::string line = fmt::format("{:<10}", baseline.task);
  if (!baseline.model_can()) {
    return fmt::format("{}  the model cannot ({} of {} right with {})", line, baseline.right,
                       baseline.asked, rows.front().configuration);
  }
  for (const EvalRow& row : rows) {
    const std::vector<TaskScore>& scores = row.measured.tasks;
    const auto score = std::find_if(scores.begin(), scores.end(), [&](const TaskScore& each) {
      return each.task == baseline.task;
    });
    if (score == scores.end()) continue;
    line += fmt::format("  {} {}/{}", row.configuration, score->right, score->asked);
  }
  return line;
}

bool by_same_top(const EvalRow& a, const EvalRow& b) {
  return a.measured.divergence.same_top < b.measured.divergence.same_top;
}

// Percent of the answers of tasks that count; nothing where none does.
std::optional<double> tasks_right(const EvalRow& row) {
  std::uint64_t asked = 0;
  std::uint64_t right = 0;
  for (const TaskScore& task : row.measured.tasks) {
    if (!task.model_can()) continue;
    asked += task.asked;
    right += task.right;
  }
  if (asked == 0) return std::nullopt;
  return 100.0 * static_cast<double>(right) / static_cast<double>(asked);
}

}  // namespace

terminal::BenchReport make_report(const std::vector<EvalRow>& rows) {
  terminal::BenchReport report("eval", {{"configuration", "KV"},
                                        {"bits_per_token", "bits/token"},
                                        {"tokens_in_same_memory", "tokens x", 2},
                                        {"perplexity_windows", "PPL 512", 4},
                                        {"perplexity_depth", "PPL depth", 4},
                                        {"kl_mean", "KL mean", 6},
                                        {"kl_p99", "KL p99", 5},
                                        {"kl_max", "KL max", 4},
                                        {"same_top_percent", "same top %", 2},
                                        {"passes", "verdict"}});
  const double bits_baseline = rows.front().measured.bits_per_token;
  for (const EvalRow& row : rows) {
    const Measurement& measured = row.measured;
    const Divergence& divergence = measured.divergence;
    const bool is_baseline = &row == &rows.front();
    const char* const verdict = !measured.has_verdict()            ? "none"
                                : reason_against(measured).empty() ? "passes"
                                                                   : "fails";
    report.add_row(
        {row.configuration, measured.bits_per_token, bits_baseline / measured.bits_per_token,
         measured_perplexity(measured.perplexity_windows),
         measured_perplexity(measured.perplexity_depth), compared(is_baseline, divergence.kl_mean),
         compared(is_baseline, divergence.kl_p99), compared(is_baseline, divergence.kl_max),
         compared(is_baseline, 100 * divergence.same_top),
         is_baseline ? ReportValue() : ReportValue(verdict)});
  }
  nlohmann::ordered_json measurements = nlohmann::ordered_json::object();
  for (const EvalRow& row : rows) {
    measurements[row.configuration] = measurement_json(row.measured);
    const std::string reason = reason_against(row.measured);
    measurements[row.configuration]["passes"] = reason.empty();
    measurements[row.configuration]["reason"] = reason;
  }
  report.add_detail("measurements", ReportValue(measurements));
  for (std::size_t i = 0; i < rows.front().measured.tasks.size(); ++i) {
    const TaskScore& task = rows.front().measured.tasks[i];
    report.add_figure(fmt::format("task_{}_counts", task.task), ReportValue(task.model_can()),
                      task_line(rows, i));
  }
  for (const EvalRow& row : rows) {
    const std::string reason = reason_against(row.measured);
    if (&row == &rows.front() || reason.empty()) continue;
    report.add_figure(fmt::format("fails_{}", row.configuration), ReportValue(reason),
                      fmt::format("{} {}: {}", row.configuration,
                                  row.measured.has_verdict() ? "fails" : "has no verdict", reason));
  }
  return report;
}

std::string quality_svg(const std::vector<EvalRow>& rows) {
  const double same_worst =
      std::min_element(rows.begin(), rows.end(), by_same_top)->measured.divergence.same_top;
  std::vector<terminal::PlotPanel> panels = {
      {.title = "Divergence from bf16 KV at depth",
       .x_title = "bits of KV a token (logarithmic)",
       .y_title = "mean KL (nats)",
       .ticks = {},
       .lines = {},
       .level = terminal::PlotLevel{kKlMeanMax, "bound"}},
      {.title = "Positions with the same top token",
       .x_title = "bits of KV a token (logarithmic)",
       .y_title = "same top token (%)",
       .ticks = {},
       .lines = {},
       .level = terminal::PlotLevel{100 * kSameTopMin, "bound"},
       .y_low = std::floor(100 * std::min(same_worst, kSameTopMin) - 1)}};
  if (tasks_right(rows.front())) {
    panels.push_back({.title = "Tasks that the model can do",
                      .x_title = "bits of KV a token (logarithmic)",
                      .y_title = "right answers (%)",
                      .ticks = {},
                      .lines = {}});
  }
  for (const EvalRow& row : rows) {
    const double bits = row.measured.bits_per_token;
    const double values[] = {row.measured.divergence.kl_mean,
                             100 * row.measured.divergence.same_top, tasks_right(row).value_or(0)};
    for (std::size_t i = 0; i < panels.size(); ++i) {
      panels[i].ticks.push_back({bits, fmt::format("{:.0f}", bits)});
      panels[i].lines.push_back({row.configuration, {{bits, values[i]}}});
    }
  }
  return terminal::plot_svg(panels);
}

}  // namespace pagoda::eval
