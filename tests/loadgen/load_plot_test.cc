// Latencies over a load's time: worked out by hand from outcomes.
#include "loadgen/load_plot.h"

#include <gtest/gtest.h>

namespace pagoda::loadgen {
namespace {

constexpr std::int64_t kNsOfMs = 1'000'000;

Outcome sent_at(std::int64_t sent_ms, std::int64_t first_ms, std::int64_t last_ms,
                std::uint64_t tokens) {
  return {.sent_ns = sent_ms * kNsOfMs,
          .first_ns = (sent_ms + first_ms) * kNsOfMs,
          .last_ns = (sent_ms + last_ms) * kNsOfMs,
          .kind = OutcomeKind::kAnswered,
          .output_tokens = tokens};
}

// 24 slices of 1 s: the last request is sent at 24 s, in the last of them.
TEST(LoadPlot, EachPartOfTheLoadHasItsOwnLatencies) {
  Outcome failed = sent_at(500, 9000, 9000, 2);
  failed.kind = OutcomeKind::kStatus;
  const std::vector<terminal::PlotPanel> panels =
      plot_load({.outcomes = {sent_at(100, 10, 110, 11), sent_at(900, 30, 230, 11), failed,
                              sent_at(5500, 50, 50, 1), sent_at(24000, 70, 170, 2)},
                 .itl_s = {}});
  ASSERT_EQ(panels.size(), 2);
  const auto& ttft = panels[0].lines;
  ASSERT_EQ(ttft.size(), 2);
  ASSERT_EQ(ttft[0].points.size(), 3);
  EXPECT_NEAR(ttft[0].points[0].x, 0.5, 1e-9);
  EXPECT_NEAR(ttft[0].points[0].y, 10, 1e-3) << "the median of 10 and 30, by nearest rank";
  EXPECT_NEAR(ttft[1].points[0].y, 30, 1e-3);
  EXPECT_NEAR(ttft[0].points[1].x, 5.5, 1e-9);
  EXPECT_NEAR(ttft[0].points[1].y, 50, 1e-3);
  EXPECT_NEAR(ttft[0].points[2].x, 23.5, 1e-9);
  const auto& itl = panels[1].lines;
  ASSERT_EQ(itl[0].points.size(), 2) << "one token has no gap";
  EXPECT_NEAR(itl[0].points[0].y, 10, 1e-3);
  EXPECT_NEAR(itl[1].points[0].y, 20, 1e-3);
  EXPECT_NEAR(itl[0].points[1].y, 100, 1e-3);
  EXPECT_TRUE(panels[0].linear_x);
  EXPECT_EQ(panels[0].ticks.back().text, "24");
}

TEST(LoadPlot, ALoadWithoutAnswersIsAnEmptyField) {
  const std::vector<terminal::PlotPanel> panels = plot_load({});
  ASSERT_EQ(panels.size(), 2);
  EXPECT_TRUE(panels[0].lines[0].points.empty());
  EXPECT_NE(terminal::plot_svg(panels), "");
}

}  // namespace
}  // namespace pagoda::loadgen
