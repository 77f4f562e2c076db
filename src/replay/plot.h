// Hit rates over capacity as an SVG picture: one panel per trace, one line per policy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pagoda::replay {

struct PlotPoint {
  std::uint64_t blocks = 1;
  double rate = 0;
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;
};

struct PlotTick {
  std::uint64_t blocks = 1;
  std::string text;
};

struct PlotPanel {
  std::string title;
  std::vector<PlotTick> ticks;  // of the capacities
  std::vector<PlotLine> lines;
  double infinite_rate = 0;  // a level line
};

// Points, ticks and lines in any order; capacities on a logarithmic axis.
std::string hit_rate_svg(std::span<const PlotPanel> panels);

}  // namespace pagoda::replay
