#include "terminal/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string_view>

namespace pagoda::terminal {
namespace {

// A panel, in pixels:
//
//   +--------------------------------------+ kPanelWidth x kPanelHeight
//   |  title                               |
//   |     y ^                    o lru     | the legend starts kLegendGap right of the field
//   |       | field              o belady  |
//   |       +----------> x                 |
//   +--------------------------------------+
constexpr double kPanelWidth = 720;
constexpr double kPanelHeight = 420;
constexpr double kLeft = 70;
constexpr double kTop = 44;
constexpr double kFieldWidth = 510;
constexpr double kFieldHeight = 310;
constexpr double kLegendGap = 16;
constexpr double kLegendLine = 20;
constexpr double kYTitleX = 18;
constexpr double kTickTextGap = 34;  // labels nearer than this are left out

constexpr const char* kStart = "text-anchor='start'";
constexpr const char* kMiddle = "text-anchor='middle'";
constexpr const char* kEnd = "text-anchor='end'";
constexpr const char* kLevelStyle = "stroke='#555' stroke-width='1.5' stroke-dasharray='6 4'";

// Told apart by colour-blind readers too (Okabe and Ito 2008).
constexpr std::array<std::string_view, 7> kColours = {"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                                      "#CC79A7", "#56B4E9", "#000000"};
// Gaps, so that of two curves in one place both are seen.
constexpr std::array<std::string_view, 4> kDashes = {"none", "9 6", "2 5", "12 4 3 4"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

// Where values of a panel are in its picture.
class Field {
 public:
  Field(const PlotPanel& panel, double top)
      : top_(top + kTop), y_low_(panel.y_low), is_linear_(panel.linear_x) {
    double highest = panel.level ? panel.level->y : y_low_;
    bool first = true;
    for (const PlotTick& tick : panel.ticks) {
      const double at = along(tick.x);
      low_ = first ? at : std::min(low_, at);
      high_ = first ? at : std::max(high_, at);
      first = false;
    }
    for (const PlotLine& line : panel.lines) {
      for (const PlotPoint& point : line.points) highest = std::max(highest, point.y);
    }
    step_ = round_step((highest - y_low_) / kStepsWanted);
    steps_ = std::max(1, static_cast<int>(std::ceil((highest - y_low_) / step_ - 1e-9)));
  }

  double x(double value) const {
    if (high_ <= low_) return kLeft + kFieldWidth / 2;
    return kLeft + kFieldWidth * (along(value) - low_) / (high_ - low_);
  }
  double y(double value) const {
    return bottom() - kFieldHeight * (value - y_low_) / (step_ * steps_);
  }
  double top() const { return top_; }
  double bottom() const { return top_ + kFieldHeight; }
  int steps() const { return steps_; }
  double value_at(int step) const { return y_low_ + step_ * step; }
  // Returns how many decimals the numbers beside the axis need, two at least.
  int decimals() const { return std::max(2, static_cast<int>(std::ceil(-std::log10(step_)))); }

 private:
  static constexpr double kStepsWanted = 8;

  // The least of 1, 2 and 5 times a power of ten that is not below `least`.
  static double round_step(double least) {
    if (!(least > 0)) return 1;
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= least * (1 - 1e-9)) return factor * power;
    }
    return 10 * power;
  }

  double along(double x) const { return is_linear_ ? x : std::log2(x); }

  double top_;
  double y_low_;
  bool is_linear_;
  double low_ = 0;
  double high_ = 0;
  double step_;
  int steps_;
};

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' {}/>\n", x1, y1, x2, y2,
                     style);
}

std::string level(double y, std::string_view style) {
  return line(kLeft, y, kLeft + kFieldWidth, y, style);
}

// style: more attributes
std::string text_at(double x, double y, std::string_view style, std::string_view text) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' {}>{}</text>\n", x, y, style, escaped(text));
}

std::string axes(const PlotPanel& panel, const Field& field) {
  std::string svg;
  for (int step = 0; step <= field.steps(); ++step) {
    const double y = field.y(field.value_at(step));
    svg += level(y, step == 0 ? "stroke='#333'" : "stroke='#ddd'");
    svg += text_at(kLeft - 8, y + 4, kEnd,
                   fmt::format("{:.{}f}", field.value_at(step), field.decimals()));
  }
  std::vector<PlotTick> ticks = panel.ticks;
  std::sort(ticks.begin(), ticks.end(),
            [](const PlotTick& a, const PlotTick& b) { return a.x < b.x; });
  double last = -kTickTextGap;
  for (const PlotTick& tick : ticks) {
    const double x = field.x(tick.x);
    svg += line(x, field.bottom(), x, field.bottom() + 5, "stroke='#333'");
    if (x - last < kTickTextGap) continue;
    svg += text_at(x, field.bottom() + 19, kMiddle, tick.text);
    last = x;
  }
  svg += text_at(kLeft + kFieldWidth / 2, field.bottom() + 42, kMiddle, panel.x_title);
  const double middle = (field.top() + field.bottom()) / 2;
  const std::string upright =
      fmt::format("{} transform='rotate(-90 {:.1f} {:.1f})'", kMiddle, kYTitleX, middle);
  return svg + text_at(kYTitleX, middle, upright, panel.y_title);
}

struct LineLook {
  std::string_view colour;
  std::string style;
};

LineLook look_of(std::size_t line) {
  const std::string_view colour = kColours[line % kColours.size()];
  return {colour, fmt::format("stroke='{}' stroke-width='2' stroke-dasharray='{}'", colour,
                              kDashes[line % kDashes.size()])};
}

std::string curve(const PlotLine& curve, const Field& field, const LineLook& look) {
  std::vector<PlotPoint> points = curve.points;
  std::sort(points.begin(), points.end(),
            [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  std::string path;
  std::string marks;
  for (const PlotPoint& point : points) {
    const double x = field.x(point.x);
    const double y = field.y(point.y);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
    marks += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='{}'/>\n", x, y, look.colour);
  }
  return fmt::format("<polyline points='{}' fill='none' {}/>\n{}", path, look.style, marks);
}

std::string legend_entry(double y, std::string_view style, std::string_view name) {
  const double x = kLeft + kFieldWidth + kLegendGap;
  return line(x, y, x + 24, y, style) + text_at(x + 32, y + 4, kStart, name);
}

std::string draw(const PlotPanel& panel, double top) {
  const Field field(panel, top);
  std::string svg = text_at(kLeft, top + 26, kStart, panel.title);
  svg += axes(panel, field);
  if (panel.level) svg += level(field.y(panel.level->y), kLevelStyle);
  double legend = field.top() + 8;
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    const LineLook look = look_of(i);
    svg += curve(panel.lines[i], field, look);
    svg += legend_entry(legend, look.style, panel.lines[i].name);
    legend += kLegendLine;
  }
  return panel.level ? svg + legend_entry(legend, kLevelStyle, panel.level->name) : svg;
}

}  // namespace

std::string plot_svg(std::span<const PlotPanel> panels) {
  const double height = kPanelHeight * static_cast<double>(panels.size());
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' "
      "viewBox='0 0 {0:.0f} {1:.0f}' font-family='sans-serif' font-size='12' fill='#222'>\n"
      "<rect width='{0:.0f}' height='{1:.0f}' fill='#fff'/>\n",
      kPanelWidth, height);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    svg += draw(panels[i], kPanelHeight * static_cast<double>(i));
  }
  return svg + "</svg>\n";
}

Status write_plot(const std::string& path, std::span<const PlotPanel> panels) {
  std::ofstream stream(path, std::ios::binary);
  stream << plot_svg(panels);
  stream.close();
  if (!stream) return Error{ErrorCode::kIo, fmt::format("`plot`: cannot write '{}'", path)};
  return ok_status();
}

}  // namespace pagoda::terminal
