#include "kernels/ref/groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ref/group_codes.h"

namespace pagoda::kernels::ref {
namespace {

constexpr float kSmallest = 0x1p-100f;

struct Group {
  GroupDigits digits = {};
  GroupScales scales = {};
};

Group group_at(const std::byte* operand, std::size_t columns, std::size_t index) {
  Group group;
  std::memcpy(&group.digits, operand + digits_offset(columns) + index * sizeof(GroupDigits),
              sizeof(GroupDigits));
  std::memcpy(&group.scales, operand + scales_offset(columns) + index * sizeof(GroupScales),
              sizeof(GroupScales));
  return group;
}

float products_of(const GroupCodes& weights, const GroupDigits& x, std::size_t begin,
                  std::size_t end) {
  std::int32_t products = 0;
  for (std::size_t i = begin; i < end; ++i) {
    products += std::int32_t{weights.codes[i]} * (16 * x.high[i] + x.low[i]);
  }
  return static_cast<float>(products);
}

float add_group(float sum, const GroupCodes& weights, const Group& x, bool scale_each_16) {
  if (!scale_each_16) {
    sum = std::fma(products_of(weights, x.digits, 0, 32), weights.scales[0] * x.scales.scale, sum);
    return std::fma(weights.minima[0], x.scales.sum, sum);
  }
  for (std::size_t half = 0; half < 2; ++half) {
    sum = std::fma(products_of(weights, x.digits, 16 * half, 16 * half + 16),
                   weights.scales[half] * x.scales.scale, sum);
    sum = std::fma(weights.minima[half], x.scales.half_sums[half], sum);
  }
  return sum;
}

}  // namespace

void put_digits(const float* x, std::size_t count, GroupDigits& digits, GroupScales& scales) {
  digits = {};
  scales = {};
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) {
      constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
      scales = {.scale = kNan, .sum = kNan, .half_sums = {kNan, kNan}};
      return;
    }
    largest = std::max(largest, std::fabs(x[i]));
  }
  if (largest < kSmallest) return;
  const float inverse = static_cast<float>(kDigitsMax) / largest;
  std::int32_t sums[2] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::int32_t>(std::nearbyint(x[i] * inverse));
    const std::int32_t high = (n + 8) >> 4;
    digits.high[i] = static_cast<std::int8_t>(high);
    digits.low[i] = static_cast<std::int8_t>(n - 16 * high);
    sums[i / 16] += n;
  }
  const float scale = largest / static_cast<float>(kDigitsMax);
  scales = {
      .scale = scale,
      .sum = scale * static_cast<float>(sums[0] + sums[1]),
      .half_sums = {scale * static_cast<float>(sums[0]), scale * static_cast<float>(sums[1])}};
}

void to_digits(const float* x, std::size_t columns, std::size_t begin, std::size_t end,
               std::byte* operand) {
  for (std::size_t column = begin; column < end; column += kGroup) {
    const std::size_t index = column / kGroup;
    Group group;
    put_digits(x + (column - begin), std::min(kGroup, end - column), group.digits, group.scales);
    std::memcpy(operand + digits_offset(columns) + index * sizeof(GroupDigits), &group.digits,
                sizeof(GroupDigits));
    std::memcpy(operand + scales_offset(columns) + index * sizeof(GroupScales), &group.scales,
                sizeof(GroupScales));
  }
}

void matmul_groups(const Matmul& job, std::size_t begin, std::size_t end) {
  const std::size_t columns = job.weight.columns;
  const std::size_t stride = operand_stride(Arithmetic::kPairs, columns);
  const bool scale_each_16 = code_traits(job.weight.type)->scale_each_16;
  for (std::size_t n = begin; n < end; ++n) {
    const std::byte* const row = job.weight.data + n * job.weight.row_bytes;
    for (std::size_t r = 0; r < job.rows; ++r) {
      float sum = 0;
      for (std::size_t index = 0; index < groups_of(columns); ++index) {
        sum = add_group(sum, read_codes(job.weight.type, row, index * kGroup),
                        group_at(job.x + r * stride, columns, index), scale_each_16);
      }
      float& y = job.y[r * job.y_stride + n];
      y = job.accumulate ? y + sum : sum;
    }
  }
}

}  // namespace pagoda::kernels::ref
