#include "speculate/row_costs.h"

#include <algorithm>

namespace pagoda::speculate {
namespace {

// Weights of the newest measurement. Whatever disturbs a step makes it slower, so that a faster one
// says more.
constexpr float kWeightFaster = 0.4f;
constexpr float kWeightSlower = 0.1f;
constexpr float kOutlier = 2.0f;  // a step that took longer, against the estimate, was disturbed
constexpr std::uint64_t kForgetSteps = 4096;
constexpr double kGainMin = 0.02;  // of one token: below it a gain may be noise

}  // namespace

RowCosts::RowCosts(float slope) : slope_(slope) { estimate(); }

float RowCosts::usual(std::uint32_t rows) const {
  return 1.0f + slope_ * static_cast<float>(rows - std::min(rows, 1u));
}

void RowCosts::note(std::uint32_t rows, double seconds) {
  if (rows == 0 || rows > kRowsMax || seconds <= 0) return;
  Measured& measured = measured_[rows];
  const auto newest = static_cast<float>(seconds);
  if (measured.step == 0) {
    measured.seconds = newest;
  } else {
    const float bounded = std::min(newest, measured.seconds * kOutlier);
    const float weight = bounded < measured.seconds ? kWeightFaster : kWeightSlower;
    measured.seconds += (bounded - measured.seconds) * weight;
  }
  measured.step = ++steps_;
  estimate();
}

double RowCosts::seconds(std::uint32_t rows) const {
  if (rows <= kRowsMax) return seconds_[rows];
  return seconds_[kRowsMax] * static_cast<double>(rows) / kRowsMax;
}

// Interpolates between measured row counts; more rows never cost less.
void RowCosts::estimate() {
  std::uint32_t before = 0;
  for (std::uint32_t rows = 1; rows <= kRowsMax; ++rows) {
    Measured& here = measured_[rows];
    if (here.step != 0 && here.step + kForgetSteps < steps_) here = {};
    if (here.step == 0) continue;
    seconds_[rows] = here.seconds;
    for (std::uint32_t r = before + 1; r < rows; ++r) {
      const float share = static_cast<float>(r - before) / static_cast<float>(rows - before);
      seconds_[r] = before == 0 ? here.seconds * usual(r) / usual(rows)
                                : seconds_[before] + (here.seconds - seconds_[before]) * share;
    }
    before = rows;
  }
  for (std::uint32_t r = before + 1; r <= kRowsMax; ++r) {
    seconds_[r] = before == 0 ? usual(r) : seconds_[before] * usual(r) / usual(before);
  }
  for (std::uint32_t r = kRowsMax; r-- > 1;) seconds_[r] = std::min(seconds_[r], seconds_[r + 1]);
}

RowCosts::Choice RowCosts::choose(const Load& load, double probability, std::uint32_t drafts_max,
                                  double draft_seconds) const {
  Choice best;
  best.tokens_per_second = (load.tokens + kGainMin * std::min(load.tokens, 1.0)) /
                           (seconds(load.rows) + load.draft_seconds);
  double reached = 1;
  double expected = 0;
  for (std::uint32_t drafts = 1; drafts <= drafts_max; ++drafts) {
    reached *= probability;
    expected += reached;
    const double took = seconds(load.rows + drafts) + load.draft_seconds + drafts * draft_seconds;
    const double rate = (load.tokens + expected) / took;
    if (rate > best.tokens_per_second) best = {drafts, expected, rate};
  }
  return best;
}

}  // namespace pagoda::speculate
