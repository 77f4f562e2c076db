#include "kernels/ref/grid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pagoda::kernels::ref {
namespace {

constexpr float kSmallest = 0x1p-100f;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kGridGroup = 16;  // columns

// The largest magnitude the weights of a row can have, whatever their codes are; NaN if one of them
// can be infinite.
float largest_weight(const CodeTraits& traits, const std::vector<GroupCodes>& codes) {
  float largest = 0;
  for (const GroupCodes& group : codes) {
    for (int i = 0; i < 2; ++i) {
      const float top = group.minima[i] + group.scales[i] * static_cast<float>(traits.highest);
      if (!std::isfinite(group.minima[i]) || !std::isfinite(top)) return kNan;
      largest = std::max({largest, std::fabs(group.minima[i]), std::fabs(top)});
    }
  }
  return largest;
}

// With minima, what rounding the step does to the codes in the middle is made up for by the offset.
GridGroup on_grid_of(float row_scale, const CodeTraits& traits, double scale, double minimum) {
  const double step = std::nearbyint(scale / row_scale);
  if (!traits.minima) {
    return {static_cast<std::int16_t>(step), static_cast<std::int32_t>(traits.lowest * step)};
  }
  const double middle = 0.5 * traits.highest;
  const double offset = std::nearbyint((minimum + scale * middle) / row_scale - step * middle);
  return {static_cast<std::int16_t>(step), static_cast<std::int32_t>(offset)};
}

// The integers of a row of x, and what one of them stands for.
struct DigitRow {
  std::vector<std::int64_t> integers;
  float scale = 0;
};
DigitRow digits_of(const std::byte* operands, std::size_t columns, std::size_t row) {
  const OperandLayout layout(columns);
  DigitRow result;
  for (std::size_t step = 0; step < steps_of(columns); ++step) {
    StepDigits digits;
    std::memcpy(&digits, operands + layout.digits(row) + step * layout.kDigitsStride,
                sizeof(digits));
    for (std::size_t i = 0; i < kStep; ++i) {
      result.integers.push_back(kDigitBase * digits.high[i] + digits.low[i]);
    }
  }
  std::memcpy(&result.scale, operands + layout.scale(row), sizeof(float));
  return result;
}

// The integers that stand for the weights of one row.
std::vector<std::int64_t> integers_of(const GridRow& row) {
  std::vector<std::int64_t> integers(row.codes.size() * kGroup);
  for (std::size_t k = 0; k < integers.size(); ++k) {
    const GridGroup& group = row.groups[k / kGridGroup];
    integers[k] = group.step * row.codes[k / kGroup].codes[k % kGroup] + group.offset;
  }
  return integers;
}

}  // namespace

bool on_grid(const WeightMatrix& weight) {
  return code_traits(weight.type) != nullptr && weight.columns <= kGridColumnsMax;
}

GridRow grid_of(const WeightMatrix& weight, std::size_t row) {
  const CodeTraits& traits = *code_traits(weight.type);
  GridRow grid;
  for (std::size_t column = 0; column < weight.columns; column += kGroup) {
    grid.codes.push_back(read_codes(weight.type, weight.data + row * weight.row_bytes, column));
  }
  grid.groups.resize(grid.codes.size() * (kGroup / kGridGroup));
  const float largest = largest_weight(traits, grid.codes);
  if (!(largest >= kSmallest)) {
    grid.scale = std::isnan(largest) ? kNan : 0.0f;
    return grid;
  }
  grid.scale = largest / static_cast<float>(traits.wide ? kWideGridMax : kGridMax);
  for (std::size_t i = 0; i < grid.groups.size(); ++i) {
    const GroupCodes& codes = grid.codes[i / 2];
    grid.groups[i] = on_grid_of(grid.scale, traits, codes.scales[i % 2], codes.minima[i % 2]);
  }
  return grid;
}

void to_digits(const float* x, std::size_t columns, std::byte* operands, std::size_t row) {
  std::vector<StepDigits> digits(steps_of(columns));
  std::vector<GroupSums> sums(groups_of(columns));
  float largest = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    largest = std::isfinite(x[i]) ? std::max(largest, std::fabs(x[i])) : kNan;
    if (std::isnan(largest)) break;
  }
  const float scale = largest >= kSmallest  ? largest / static_cast<float>(kDigitsMax)
                      : std::isnan(largest) ? kNan
                                            : 0.0f;
  for (std::size_t i = 0; largest >= kSmallest && i < columns; ++i) {
    const float inverse = static_cast<float>(kDigitsMax) / largest;
    const auto n = static_cast<std::int32_t>(std::nearbyint(x[i] * inverse));
    const std::int32_t high = (n + kDigitBase / 2) >> kDigitBits;
    const std::int32_t low = n - kDigitBase * high;
    digits[i / kStep].high[i % kStep] = static_cast<std::int8_t>(high);
    digits[i / kStep].low[i % kStep] = static_cast<std::int8_t>(low);
    GroupSums& sum = sums[i / kGroup];
    sum.high[i / kGridGroup % 2] = static_cast<std::int16_t>(sum.high[i / kGridGroup % 2] + high);
    sum.low[i / kGridGroup % 2] = static_cast<std::int16_t>(sum.low[i / kGridGroup % 2] + low);
  }
  const OperandLayout layout(columns);
  for (std::size_t step = 0; step < digits.size(); ++step) {
    std::memcpy(operands + layout.digits(row) + step * layout.kDigitsStride, &digits[step],
                sizeof(StepDigits));
  }
  std::memcpy(operands + layout.sums(row), sums.data(), sums.size() * sizeof(GroupSums));
  std::memcpy(operands + layout.scale(row), &scale, sizeof(scale));
}

float float_of_sum(std::int64_t sum) {
  constexpr std::int64_t kPart = 1 << 24;
  const std::int64_t high = sum >> 24;
  return std::fma(static_cast<float>(high), static_cast<float>(kPart),
                  static_cast<float>(sum & (kPart - 1)));
}

void matmul_grid(const Matmul& job, std::size_t begin, std::size_t end) {
  const std::size_t columns = job.weight.columns;
  std::vector<DigitRow> x;
  for (std::size_t r = 0; r < job.rows; ++r) x.push_back(digits_of(job.x, columns, r));
  for (std::size_t n = begin; n < end; ++n) {
    const GridRow grid = grid_of(job.weight, n);
    const std::vector<std::int64_t> weights = integers_of(grid);
    for (std::size_t r = 0; r < job.rows; ++r) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < columns; ++k) sum += weights[k] * x[r].integers[k];
      const float product = float_of_sum(sum) * grid.scale * x[r].scale;
      float& y = job.y[r * job.y_stride + n];
      y = job.accumulate ? y + product : product;
    }
  }
}

}  // namespace pagoda::kernels::ref
