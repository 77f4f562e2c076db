#include "eval/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace pagoda::eval {
namespace {

std::size_t top_of(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double log_sum(std::span<const float> logits, double best) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - best);
  return best + std::log(sum);
}

}  // namespace

RowDivergence compare_rows(std::span<const float> reference, std::span<const float> measured) {
  const std::size_t top = top_of(reference);
  const std::size_t top_measured = top_of(measured);
  const double log_p = log_sum(reference, double{reference[top]});
  const double log_q = log_sum(measured, double{measured[top_measured]});
  double kl = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double p = double{reference[i]} - log_p;
    kl += std::exp(p) * (p - (double{measured[i]} - log_q));
  }
  // Rounding may leave a little less than nothing of equal rows.
  return {std::max(0.0, kl), top == top_measured};
}

Divergence summarise(std::span<const RowDivergence> rows) {
  Divergence all;
  all.rows = rows.size();
  if (rows.empty()) return all;
  std::vector<double> values;
  std::size_t same = 0;
  for (const RowDivergence& row : rows) {
    values.push_back(row.kl);
    all.kl_mean += row.kl;
    same += row.same_top ? 1 : 0;
  }
  const auto count = static_cast<double>(rows.size());
  all.kl_mean /= count;
  all.same_top = static_cast<double>(same) / count;
  std::sort(values.begin(), values.end());
  all.kl_p99 = values[(values.size() * 99 + 99) / 100 - 1];
  all.kl_max = values.back();
  return all;
}

}  // namespace pagoda::eval
