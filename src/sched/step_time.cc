#include "sched/step_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace pagoda::sched {
namespace {

constexpr std::size_t kTerms = StepCosts::kTerms;
using Terms = std::array<double, kTerms>;
using Matrix = std::array<Terms, kTerms>;

// A class keeps so much of its sums at a step of its own. Decode steps are many and much alike.
constexpr double kKeptDecode = 0.95;
constexpr double kKeptPrompt = 0.9;
// It keeps so much at a step of another size with prompt tokens: sizes that do not come any more
// say less about the machine as it is now.
constexpr double kKeptOther = 0.97;
constexpr double kKnownSteps = 2;  // from here on a class has a prediction to compare with
constexpr double kOutlier = 2;
// A prediction that fails by more than this is a sign that the machine has changed, and everything
// fades: a tenth at an error of a half or more.
constexpr double kErrorTolerated = 0.3;
constexpr double kErrorMost = 0.5;
constexpr double kErrorFade = 0.5;
constexpr double kSpreadWeight = 0.05;
constexpr std::uint32_t kTrustedGrowth = 4;
// Added to the diagonal, whose elements are 1: terms that always came together share their cost.
constexpr double kRidge = 1e-5;

// Solves matrix * x = right for the terms in `used`, by elimination; the others are 0. The matrix
// is symmetric and positive definite.
Terms solve(Matrix matrix, Terms right, const std::array<bool, kTerms>& used) {
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (!used[i]) continue;
    for (std::size_t row = i + 1; row < kTerms; ++row) {
      if (!used[row]) continue;
      const double factor = matrix[row][i] / matrix[i][i];
      for (std::size_t k = i; k < kTerms; ++k) matrix[row][k] -= factor * matrix[i][k];
      right[row] -= factor * right[i];
    }
  }
  Terms x{};
  for (std::size_t i = kTerms; i-- > 0;) {
    if (!used[i]) continue;
    double rest = right[i];
    for (std::size_t k = i + 1; k < kTerms; ++k) rest -= used[k] ? matrix[i][k] * x[k] : 0;
    x[i] = rest / matrix[i][i];
  }
  return x;
}

// The same with no term below 0: the most negative one is left out until none is.
Terms solve_positive(const Matrix& matrix, const Terms& right, std::array<bool, kTerms> used) {
  for (;;) {
    const Terms x = solve(matrix, right, used);
    const auto least = std::min_element(x.begin(), x.end());
    if (*least >= 0) return x;
    used[static_cast<std::size_t>(least - x.begin())] = false;
  }
}

}  // namespace

void StepTime::Sums::fade(double factor) {
  for (Terms& row : products) {
    for (double& sum : row) sum *= factor;
  }
  for (double& sum : with_seconds) sum *= factor;
  steps *= factor;
}

void StepTime::Sums::add(const Terms& terms, double seconds, double scale) {
  const double weight = 1 / (scale * scale);
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t k = 0; k < kTerms; ++k) products[i][k] += weight * terms[i] * terms[k];
    with_seconds[i] += weight * terms[i] * seconds;
  }
  steps += 1;
}

std::size_t StepTime::class_of(const StepWork& work) {
  return std::min<std::size_t>(std::bit_width(work.prompt_tokens), kClasses - 1);
}

void StepTime::note(const StepWork& work, double seconds) {
  if (work.tokens == 0 || !(seconds > 0) || !std::isfinite(seconds)) return;
  const std::size_t own = class_of(work);
  const double predicted = costs_.seconds(work);
  const bool is_known = classes_[own].steps >= kKnownSteps && predicted > 0;
  const double error = is_known ? std::min(std::abs(seconds / predicted - 1), kErrorMost) : 0;
  if (is_known && work.prompt_tokens > 0) {
    costs_.spread += (error - costs_.spread) * kSpreadWeight;
  }
  if (error > kErrorTolerated) {
    for (Sums& sums : classes_) sums.fade(1 - kErrorFade * (error - kErrorTolerated));
  }
  const double bounded = is_known ? std::min(seconds, kOutlier * predicted) : seconds;
  classes_[own].fade(work.prompt_tokens > 0 ? kKeptPrompt : kKeptDecode);
  for (std::size_t i = 1; i < kClasses && work.prompt_tokens > 0; ++i) {
    if (i != own) classes_[i].fade(kKeptOther);
  }
  classes_[own].add({1, static_cast<double>(work.tokens), work.prompt_keys, work.decode_keys},
                    bounded, is_known ? predicted : seconds);
  prompt_tokens_most_ = std::max(prompt_tokens_most_, work.prompt_tokens);
  costs_.prompt_tokens_trusted =
      std::max(StepCosts::kTrustedAtFirst, kTrustedGrowth * prompt_tokens_most_);
  fit();
}

// Terms are scaled by the root of their squares, so that the matrix has a diagonal of ones.
void StepTime::fit() {
  Sums all;
  for (const Sums& sums : classes_) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t k = 0; k < kTerms; ++k) all.products[i][k] += sums.products[i][k];
      all.with_seconds[i] += sums.with_seconds[i];
    }
  }
  Terms scale{};
  std::array<bool, kTerms> used{};
  for (std::size_t i = 0; i < kTerms; ++i) {
    used[i] = all.products[i][i] > 0;
    scale[i] = used[i] ? 1 / std::sqrt(all.products[i][i]) : 0;
  }
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t k = 0; k < kTerms; ++k) all.products[i][k] *= scale[i] * scale[k];
    all.products[i][i] += kRidge;
    all.with_seconds[i] *= scale[i];
  }
  const Terms x = solve_positive(all.products, all.with_seconds, used);
  costs_.step_s = x[0] * scale[0];
  costs_.token_s = x[1] * scale[1];
  costs_.prompt_key_s = x[2] * scale[2];
  costs_.decode_key_s = x[3] * scale[3];
}

}  // namespace pagoda::sched
