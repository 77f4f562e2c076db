// Curves as an SVG picture: one panel below the other, each with its axes and a legend.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::terminal {

struct PlotPoint {
  double x = 1;
  double y = 0;
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;
};

struct PlotTick {
  double x = 1;
  std::string text;
};

// A level line across the panel.
struct PlotLevel {
  double y = 0;
  std::string name;
};

struct PlotPanel {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<PlotTick> ticks;  // of x
  std::vector<PlotLine> lines;
  std::optional<PlotLevel> level = {};
  double y_low = 0;       // where the axis begins
  bool linear_x = false;  // else logarithmic, of values above 0
};

// Points, ticks and lines in any order.
std::string plot_svg(std::span<const PlotPanel> panels);

// The same into a file, which `plot` names. Without panels it is an empty picture: who measures for
// minutes writes one first, so that a name that cannot be written is told at once.
Status write_plot(const std::string& path, std::span<const PlotPanel> panels);

}  // namespace pagoda::terminal
