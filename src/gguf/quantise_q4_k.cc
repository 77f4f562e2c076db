// Q4_K: 256 values in 8 groups of 32. A group's value is scale * code - minimum, with codes of 0 to
// 15; its scale and its minimum are integers of 0 to 63, times the block's d and dmin.
//
//   d:f16 | dmin:f16 | scales and minima:12 | codes:128      (bits: kernels/ref/dequantise_k.cc)
//
// Each group is fitted by itself: from several guesses at the range that codes cover, codes are
// rounded and scale and minimum solved for the least square error, in turns. The integers are then
// chosen among the neighbours of the fit, with the codes that each of them gives.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "gguf/quantise.h"

namespace pagoda::gguf {
namespace {

constexpr int kGroups = 8;
constexpr int kGroupValues = 32;
constexpr int kCodeMax = 15;
constexpr int kLevelMax = 63;  // of a group's scale and minimum
constexpr int kLanes = 8;      // of sums: term i goes to lane i % 8

// The share of a group's range that a guess covers; values outside are clamped.
constexpr auto kShares = std::to_array<float>({1.04f, 0.98f, 0.92f, 0.86f, 0.8f, 0.7f});
constexpr int kTurns = 2;

struct GroupFit {
  float scale = 0;
  float minimum = 0;
};

using Codes = std::array<std::int32_t, kGroupValues>;

float sum_of(const std::array<float, kLanes>& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Scales below this have no inverse that is a float.
float inverse_scale(float scale) { return scale > 1e-38f ? 1.0f / scale : 0.0f; }

// Rounds to the nearest code, the higher of two.
void choose_codes(const float* values, const GroupFit& fit, Codes& codes) {
  const float inverse = inverse_scale(fit.scale);
  for (int i = 0; i < kGroupValues; ++i) {
    const float scaled = (values[i] + fit.minimum) * inverse + 0.5f;
    codes[i] = static_cast<std::int32_t>(std::min(std::max(scaled, 0.0f), kCodeMax + 0.5f));
  }
}

// The sum of squared differences with the codes that are nearest.
float error_of(const float* values, const GroupFit& fit, Codes& codes) {
  choose_codes(values, fit, codes);
  std::array<float, kLanes> lanes = {};
  for (int i = 0; i < kGroupValues; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float made = fit.scale * static_cast<float>(codes[i + lane]) - fit.minimum;
      const float difference = values[i + lane] - made;
      lanes[lane] += difference * difference;
    }
  }
  return sum_of(lanes);
}

// Solves for the scale and the minimum, which is not negative, of the least error with these codes.
GroupFit solve(const float* values, float sum, const Codes& codes) {
  std::array<float, kLanes> lanes = {};
  int code_sum = 0;
  int square_sum = 0;
  for (int i = 0; i < kGroupValues; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::int32_t code = codes[i + lane];
      code_sum += code;
      square_sum += code * code;
      lanes[lane] += static_cast<float>(code) * values[i + lane];
    }
  }
  const float products = sum_of(lanes);
  const int determinant = kGroupValues * square_sum - code_sum * code_sum;
  GroupFit fit;
  if (determinant > 0) {
    fit.scale = (kGroupValues * products - static_cast<float>(code_sum) * sum) /
                static_cast<float>(determinant);
    fit.minimum = (fit.scale * static_cast<float>(code_sum) - sum) / kGroupValues;
  }
  if (determinant <= 0 || fit.minimum < 0) {
    fit.scale = square_sum > 0 ? products / static_cast<float>(square_sum) : 0.0f;
    fit.minimum = 0;
  }
  fit.scale = std::max(fit.scale, 0.0f);
  return fit;
}

GroupFit fit_group(const float* values) {
  std::array<float, kLanes> lanes = {};
  float low = 0;
  float high = values[0];
  for (int i = 0; i < kGroupValues; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
    lanes[i % kLanes] += values[i];
  }
  const float sum = sum_of(lanes);
  Codes codes;
  GroupFit best = {.scale = (high - low) / kCodeMax, .minimum = -low};
  float least = error_of(values, best, codes);
  for (const float share : kShares) {
    GroupFit fit = {.scale = (high - low) * share / kCodeMax, .minimum = -low * share};
    for (int turn = 0; turn < kTurns; ++turn) {
      choose_codes(values, fit, codes);
      fit = solve(values, sum, codes);
    }
    const float error = error_of(values, fit, codes);
    if (error >= least) continue;
    least = error;
    best = fit;
  }
  return best;
}

// Returns a block's d or dmin in half precision: 63 times it, the largest level, reaches `largest`.
std::uint16_t unit_of(float largest) { return fp16_from_float(largest / kLevelMax); }

int level_of(float part, float unit) {
  const float level = part * inverse_scale(unit) + 0.5f;
  return static_cast<int>(std::min(std::max(level, 0.0f), kLevelMax + 0.5f));
}

struct GroupLevels {
  int scale = 0;
  int minimum = 0;
};

// The integers of the least error around those of the fit, and their codes.
GroupLevels choose_levels(const float* values, const GroupFit& fit, float scale_unit,
                          float minimum_unit, Codes& codes) {
  const GroupLevels middle = {level_of(fit.scale, scale_unit), level_of(fit.minimum, minimum_unit)};
  GroupLevels best;
  float least = 0;
  bool is_first = true;
  Codes tried;
  for (int i = 0; i < 9; ++i) {
    const GroupLevels levels = {middle.scale + i / 3 - 1, middle.minimum + i % 3 - 1};
    const bool exists = levels.scale >= 0 && levels.scale <= kLevelMax && levels.minimum >= 0 &&
                        levels.minimum <= kLevelMax;
    if (!exists) continue;
    const GroupFit made = {.scale = scale_unit * static_cast<float>(levels.scale),
                           .minimum = minimum_unit * static_cast<float>(levels.minimum)};
    const float error = error_of(values, made, tried);
    if (!is_first && error >= least) continue;
    is_first = false;
    least = error;
    best = levels;
    codes = tried;
  }
  return best;
}

void store_levels(int group, const GroupLevels& levels, std::array<unsigned, 12>& packed) {
  const auto scale = static_cast<unsigned>(levels.scale);
  const auto minimum = static_cast<unsigned>(levels.minimum);
  const auto g = static_cast<std::size_t>(group);
  if (group < 4) {
    packed[g] |= scale;
    packed[g + 4] |= minimum;
  } else {
    packed[g + 4] = (scale & 15u) | (minimum & 15u) << 4;
    packed[g - 4] |= scale >> 4 << 6;
    packed[g] |= minimum >> 4 << 6;
  }
}

bool is_finite_half(std::uint16_t bits) { return (bits & 0x7C00u) != 0x7C00u; }

}  // namespace

bool quantise_q4_k(const float* values, std::byte* block) {
  // The square of a difference must be a float; beyond this d would not be a half float anyway.
  constexpr float kMagnitudeMax = 1e9f;
  bool fits = true;
  for (int i = 0; i < kGroups * kGroupValues; ++i) {
    fits = fits && std::fabs(values[i]) <= kMagnitudeMax;  // false for a NaN
  }
  if (!fits) return false;

  std::array<GroupFit, kGroups> groups;
  float scale_max = 0;
  float minimum_max = 0;
  for (int g = 0; g < kGroups; ++g) {
    groups[g] = fit_group(values + g * kGroupValues);
    scale_max = std::max(scale_max, groups[g].scale);
    minimum_max = std::max(minimum_max, groups[g].minimum);
  }
  const std::array<std::uint16_t, 2> units = {unit_of(scale_max), unit_of(minimum_max)};
  if (!is_finite_half(units[0]) || !is_finite_half(units[1])) return false;
  std::memcpy(block, units.data(), sizeof(units));
  const float scale_unit = float_from_fp16(units[0]);
  const float minimum_unit = float_from_fp16(units[1]);

  std::array<unsigned, 12> packed = {};
  std::array<unsigned, kGroups* kGroupValues / 2> nibbles = {};
  for (int g = 0; g < kGroups; ++g) {
    Codes codes;
    store_levels(
        g, choose_levels(values + g * kGroupValues, groups[g], scale_unit, minimum_unit, codes),
        packed);
    for (int i = 0; i < kGroupValues; ++i) {
      nibbles[g / 2 * kGroupValues + i] |= static_cast<unsigned>(codes[i]) << (g % 2 * 4);
    }
  }
  for (std::size_t i = 0; i < packed.size(); ++i) block[4 + i] = static_cast<std::byte>(packed[i]);
  for (std::size_t i = 0; i < nibbles.size(); ++i) {
    block[16 + i] = static_cast<std::byte>(nibbles[i]);
  }
  return true;
}

}  // namespace pagoda::gguf
