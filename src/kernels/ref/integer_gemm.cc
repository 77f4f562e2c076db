#include "kernels/ref/integer_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pagoda::kernels::ref {
namespace {

constexpr float kSmallest = 0x1p-100f;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kScaleGroup = 16;  // columns
// A row whose scales are powers of two has this as its largest group scale, so that weights stay
// below kWeightIntMax.
constexpr float kPowerGrid = 2048;

// The largest magnitude the weights of a row can have, whatever their codes are; NaN if one of them
// can be infinite.
float largest_weight(const QuantTraits& traits, const std::vector<QuantBlock>& codes) {
  float largest = 0;
  for (const QuantBlock& group : codes) {
    for (int i = 0; i < 2; ++i) {
      const float top = group.minima[i] + group.scales[i] * static_cast<float>(traits.highest);
      if (!std::isfinite(group.minima[i]) || !std::isfinite(top)) return kNan;
      largest = std::max({largest, std::fabs(group.minima[i]), std::fabs(top)});
    }
  }
  return largest;
}

// With minima, what rounding the group scale does to the codes in the middle is made up for by the
// zero point.
IntegerGroup integer_group(float row_scale, const QuantTraits& traits, double scale,
                           double minimum) {
  const double group_scale = std::nearbyint(scale / row_scale);
  if (!traits.minima) {
    return {static_cast<std::int16_t>(group_scale),
            static_cast<std::int32_t>(traits.lowest * group_scale)};
  }
  const double middle = 0.5 * traits.highest;
  const double zero_point =
      std::nearbyint((minimum + scale * middle) / row_scale - group_scale * middle);
  return {static_cast<std::int16_t>(group_scale), static_cast<std::int32_t>(zero_point)};
}

}  // namespace

IntegerActivations limbs_of(const std::byte* activations, std::size_t columns, std::size_t row) {
  const ActivationLayout layout(columns);
  IntegerActivations result;
  for (std::size_t block = 0; block < k_blocks_of(columns); ++block) {
    Int8Limbs limbs;
    std::memcpy(&limbs, activations + layout.limbs(row) + block * layout.kLimbsStride,
                sizeof(limbs));
    for (std::size_t i = 0; i < kBlockK; ++i) {
      result.integers.push_back(kLimbBase * limbs.high[i] + limbs.low[i]);
    }
  }
  std::memcpy(&result.scale, activations + layout.scale(row), sizeof(float));
  return result;
}

namespace {

// The integers that stand for the weights of one row.
std::vector<std::int64_t> integers_of(const IntegerRow& row) {
  std::vector<std::int64_t> integers(row.codes.size() * kGroupColumns);
  for (std::size_t k = 0; k < integers.size(); ++k) {
    const IntegerGroup& group = row.groups[k / kScaleGroup];
    integers[k] =
        group.scale * row.codes[k / kGroupColumns].codes[k % kGroupColumns] + group.zero_point;
  }
  return integers;
}

}  // namespace

bool multiplied_as_integers(const WeightMatrix& weight) {
  return quant_traits(weight.type) != nullptr && weight.columns <= kIntegerColumnsMax;
}

IntegerRow integer_row(const WeightMatrix& weight, std::size_t row) {
  const QuantTraits& traits = *quant_traits(weight.type);
  IntegerRow grid;
  for (std::size_t column = 0; column < weight.columns; column += kGroupColumns) {
    grid.codes.push_back(
        read_quant_block(weight.type, weight.data + row * weight.row_bytes, column));
  }
  grid.groups.resize(grid.codes.size() * (kGroupColumns / kScaleGroup));
  const float largest = largest_weight(traits, grid.codes);
  if (!(largest >= kSmallest)) {
    grid.scale = std::isnan(largest) ? kNan : 0.0f;
    return grid;
  }
  const float most = static_cast<float>(std::max(-traits.lowest, traits.highest + traits.lowest));
  grid.scale = traits.powers_of_two
                   ? largest / most / kPowerGrid
                   : largest / static_cast<float>(traits.wide ? kWideWeightIntMax : kWeightIntMax);
  for (std::size_t i = 0; i < grid.groups.size(); ++i) {
    const QuantBlock& codes = grid.codes[i / 2];
    grid.groups[i] = integer_group(grid.scale, traits, codes.scales[i % 2], codes.minima[i % 2]);
  }
  return grid;
}

void to_limbs(const float* x, std::size_t columns, std::byte* activations, std::size_t row) {
  std::vector<Int8Limbs> limbs(k_blocks_of(columns));
  std::vector<GroupSums> sums(groups_of(columns));
  float largest = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    largest = std::isfinite(x[i]) ? std::max(largest, std::fabs(x[i])) : kNan;
    if (std::isnan(largest)) break;
  }
  const float scale = largest >= kSmallest  ? largest / static_cast<float>(kLimbsMax)
                      : std::isnan(largest) ? kNan
                                            : 0.0f;
  for (std::size_t i = 0; largest >= kSmallest && i < columns; ++i) {
    const float inverse = static_cast<float>(kLimbsMax) / largest;
    const auto n = static_cast<std::int32_t>(std::nearbyint(x[i] * inverse));
    const std::int32_t high = (n + kLimbBase / 2) >> kLimbBits;
    const std::int32_t low = n - kLimbBase * high;
    limbs[i / kBlockK].high[i % kBlockK] = static_cast<std::int8_t>(high);
    limbs[i / kBlockK].low[i % kBlockK] = static_cast<std::int8_t>(low);
    GroupSums& sum = sums[i / kGroupColumns];
    sum.high[i / kScaleGroup % 2] = static_cast<std::int16_t>(sum.high[i / kScaleGroup % 2] + high);
    sum.low[i / kScaleGroup % 2] = static_cast<std::int16_t>(sum.low[i / kScaleGroup % 2] + low);
  }
  const ActivationLayout layout(columns);
  for (std::size_t block = 0; block < limbs.size(); ++block) {
    std::memcpy(activations + layout.limbs(row) + block * layout.kLimbsStride, &limbs[block],
                sizeof(Int8Limbs));
  }
  std::memcpy(activations + layout.sums(row), sums.data(), sums.size() * sizeof(GroupSums));
  std::memcpy(activations + layout.scale(row), &scale, sizeof(scale));
}

float float_of_sum(std::int64_t sum) {
  constexpr std::int64_t kPart = 1 << 24;
  const std::int64_t high = sum >> 24;
  return std::fma(static_cast<float>(high), static_cast<float>(kPart),
                  static_cast<float>(sum & (kPart - 1)));
}

void matmul_integers(const Matmul& job, std::size_t begin, std::size_t end) {
  const std::size_t columns = job.weight.columns;
  std::vector<IntegerActivations> x;
  for (std::size_t r = 0; r < job.rows; ++r) x.push_back(limbs_of(job.x, columns, r));
  for (std::size_t n = begin; n < end; ++n) {
    const IntegerRow grid = integer_row(job.weight, n);
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
