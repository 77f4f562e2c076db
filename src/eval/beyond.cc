#include "eval/beyond.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/perplexity.h"
#include "terminal/plot.h"

namespace pagoda::eval {

using terminal::ReportValue;

std::vector<double> perplexity_by_position(std::span<const float> logprobs) {
  std::vector<double> parts;
  for (std::size_t begin = 0; begin < logprobs.size(); begin += kBeyondPart) {
    const auto part = logprobs.subspan(begin, std::min(kBeyondPart, logprobs.size() - begin));
    if (part.size() >= kBeyondPart / 2) parts.push_back(app::perplexity_of(part).value);
  }
  return parts;
}

terminal::BenchReport make_beyond_report(const std::vector<BeyondRow>& rows) {
  std::vector<terminal::BenchColumn> columns = {{"position", "from position"}};
  std::size_t parts = 0;
  for (const BeyondRow& row : rows) {
    columns.push_back({"perplexity_" + row.configuration, row.configuration, 3});
    parts = std::max(parts, row.perplexity.size());
  }
  terminal::BenchReport report("eval_beyond", std::move(columns));
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<ReportValue> cells = {ReportValue(std::uint64_t{part * kBeyondPart})};
    for (const BeyondRow& row : rows) {
      const bool was_read = part < row.perplexity.size();
      cells.push_back(was_read ? ReportValue(row.perplexity[part]) : ReportValue());
    }
    report.add_row(std::move(cells));
  }
  return report;
}

std::string beyond_svg(const std::vector<BeyondRow>& rows) {
  terminal::PlotPanel panel = {.title = "Perplexity of a text past the context",
                               .x_title = "position (logarithmic)",
                               .y_title = "perplexity of 1,024 tokens",
                               .ticks = {},
                               .lines = {}};
  for (const BeyondRow& row : rows) {
    terminal::PlotLine line = {row.configuration, {}};
    for (std::size_t part = 0; part < row.perplexity.size(); ++part) {
      const auto position = static_cast<double>((part + 1) * kBeyondPart);
      line.points.push_back({position, row.perplexity[part]});
    }
    panel.lines.push_back(std::move(line));
  }
  std::size_t parts = 0;
  for (const BeyondRow& row : rows) parts = std::max(parts, row.perplexity.size());
  for (std::size_t part = 1; part <= parts; part *= 2) {
    const std::size_t position = part * kBeyondPart;
    panel.ticks.push_back({static_cast<double>(position), fmt::format("{}", position)});
  }
  return terminal::plot_svg({&panel, 1});
}

}  // namespace pagoda::eval
