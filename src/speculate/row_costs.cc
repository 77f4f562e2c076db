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

double RowCosts::rate_to_beat(std::uint32_t rows) const {
  return (rows + kGainMin) / seconds(rows);
}

bool RowCosts::may_pay(std::uint32_t rows, std::uint32_t drafts_max) const {
  const double least = rate_to_beat(rows);
  const std::uint32_t most = std::min(drafts_max, kRowsMax);  // rates of more rows are no better
  for (std::uint32_t drafts = 1; drafts <= most; ++drafts) {
    if ((rows + drafts) / seconds(rows + drafts) > least) return true;
  }
  return false;
}

RowCosts::Choice RowCosts::choose(std::uint32_t rows, const Draft& draft) const {
  Choice best;
  double paying = rate_to_beat(rows);
  double reached = 1;
  double tokens = rows;
  for (std::uint32_t length = 1; length <= draft.tokens; ++length) {
    reached *= draft.probability;
    tokens += reached * draft.sequences;
    const std::uint32_t drafts = length * draft.sequences;
    const double rate = tokens / (seconds(rows + drafts) + drafts * draft.token_seconds);
    best.tokens_per_second = std::max(best.tokens_per_second, rate);
    if (rate <= paying) continue;
    paying = rate;
    best.drafts = length;
  }
  return best;
}

}  // namespace pagoda::speculate
