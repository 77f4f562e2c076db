// Where points are drawn: the field of a plot is 510 wide and 310 high, and begins at (70, 44).
#include "terminal/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::terminal {
namespace {

using testing::HasSubstr;

std::string drawn(bool linear, double first) {
  const PlotPanel panel = {.title = "t",
                           .x_title = "x",
                           .y_title = "y",
                           .ticks = {{first, "a"}, {8, "b"}},
                           .lines = {{.name = "l", .points = {{first, 0}, {4, 4}, {8, 8}}}},
                           .linear_x = linear};
  return plot_svg({&panel, 1});
}

TEST(Plot, ALinearAxisDividesTheFieldByDistance) {
  EXPECT_THAT(drawn(true, 0), HasSubstr("points='70.0,354.0 325.0,199.0 580.0,44.0'"));
}

TEST(Plot, ALogarithmicAxisDividesItByFactors) {
  EXPECT_THAT(drawn(false, 1), HasSubstr("points='70.0,354.0 410.0,199.0 580.0,44.0'"));
}

}  // namespace
}  // namespace pagoda::terminal
