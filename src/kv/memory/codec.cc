#include "kv/memory/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/e4m3.h"
#include "base/e5m2.h"
#include "base/half.h"

namespace pagoda::kv::memory {
namespace {

float unchanged(float value) { return value; }

// Bits: an element as it stands in memory.
template <class Bits, Bits (*convert)(float)>
void encode(const float* values, std::size_t count, Row row) {
  for (std::size_t i = 0; i < count; ++i) {
    const Bits bits = convert(values[i]);
    std::memcpy(row.data + row.offset(i) * sizeof(Bits), &bits, sizeof(Bits));
  }
}

template <class Bits, float (*convert)(Bits)>
void decode(Row row, std::size_t count, float* values) {
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, row.data + row.offset(i) * sizeof(Bits), sizeof(Bits));
    values[i] = convert(bits);
  }
}

// The e of a row with that largest magnitude, which is at least 0.
int row_exponent(float largest) {
  // 448 is 1.75 * 2^8: a mantissa above 1.75 carries into the exponent.
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(largest) + 0x1FFFFFu;
  return std::clamp(static_cast<int>(bits >> 23) - 127 - 8, -15, 7);
}

void encode_scaled(const float* values, std::size_t count, Row row) {
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::fmax(largest, std::fabs(values[i]));
  const int exponent = row_exponent(largest);
  const std::uint16_t scale = fp16_from_float(std::ldexp(1.0f, exponent));
  std::memcpy(row.scale, &scale, sizeof scale);
  for (std::size_t i = 0; i < count; ++i) {
    row.data[row.offset(i)] = std::byte{e4m3_from_float(std::ldexp(values[i], -exponent))};
  }
}

void decode_scaled(Row row, std::size_t count, float* values) {
  std::uint16_t scale = 0;
  std::memcpy(&scale, row.scale, sizeof scale);
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = std::to_integer<std::uint8_t>(row.data[row.offset(i)]);
    values[i] = float_from_e4m3(code) * float_from_fp16(scale);
  }
}

// NaN where one of them is.
float largest_magnitude(const float* values, std::size_t count) {
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) return values[i];
    largest = std::max(largest, std::fabs(values[i]));
  }
  return largest;
}

void encode_int8(const float* values, std::size_t count, Row row) {
  const IntegerScale by = integer_scale(largest_magnitude(values, count));
  std::memcpy(row.scale, &by.scale, sizeof by.scale);
  for (std::size_t i = 0; i < count; ++i) {
    const float steps = by.inverse == 0 ? 0.0f : values[i] * by.inverse;
    const float cut = std::clamp<float>(steps, -kInt8CodeMax, kInt8CodeMax);
    row.data[row.offset(i)] = static_cast<std::byte>(static_cast<int>(std::nearbyint(cut)));
  }
}

// Halfway between levels above 0.
constexpr std::size_t kInt4Magnitudes = kInt4Codes / 2;
constexpr std::array<float, kInt4Magnitudes - 1> kInt4Halfway = [] {
  std::array<float, kInt4Magnitudes - 1> halfway = {};
  for (std::size_t i = 0; i < halfway.size(); ++i) {
    const int neighbours = kInt4Levels[kInt4Magnitudes + i] + kInt4Levels[kInt4Magnitudes + i + 1];
    halfway[i] = static_cast<float>(neighbours) / 2;
  }
  return halfway;
}();

using GroupFloats = std::array<float, kScaleGroup>;

// Which of the levels above 0 is nearest to each magnitude.
std::array<std::int32_t, kScaleGroup> nearest_magnitudes(const GroupFloats& z, float factor) {
  std::array<std::int32_t, kScaleGroup> nearest = {};
  for (std::size_t i = 0; i < kScaleGroup; ++i) {
    const float magnitude = std::fabs(z[i] * factor);
    for (const float halfway : kInt4Halfway) nearest[i] += magnitude > halfway ? 1 : 0;
  }
  return nearest;
}

// The sum of levels times magnitudes of z, and that of their squares.
struct LevelSums {
  float products;
  float squares;
};
LevelSums level_sums(const GroupFloats& z, float factor) {
  GroupFloats products;
  GroupFloats squares;
  for (std::size_t i = 0; i < kScaleGroup; ++i) {
    const float magnitude = std::fabs(z[i] * factor);
    float level = kInt4Levels[kInt4Magnitudes];
    for (std::size_t k = 0; k < kInt4Halfway.size(); ++k) {
      const auto step = static_cast<float>(kInt4Levels[kInt4Magnitudes + k + 1] -
                                           kInt4Levels[kInt4Magnitudes + k]);
      level += magnitude > kInt4Halfway[k] ? step : 0.0f;
    }
    products[i] = level * std::fabs(z[i]);
    squares[i] = level * level;
  }
  for (std::size_t half = kScaleGroup / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      products[i] += products[i + half];
      squares[i] += squares[i + half];
    }
  }
  return {products[0], squares[0]};
}

struct Int4Group {
  std::uint16_t scale;  // fp16
  std::array<std::uint8_t, kScaleGroup> codes;
};
Int4Group encode_group(const float* values) {
  const float largest = largest_magnitude(values, kScaleGroup);
  Int4Group group = {};
  if (!(largest >= kInt4Smallest)) {
    group.scale = std::isnan(largest) ? fp16_from_float(largest) : std::uint16_t{0};
    return group;
  }
  const float inverse = 1 / largest;
  GroupFloats z;
  for (std::size_t i = 0; i < kScaleGroup; ++i) z[i] = values[i] * inverse;
  float best_factor = 0;
  float best_scale = 0;
  float best = 0;
  for (const float factor : kInt4Tries) {
    const LevelSums sums = level_sums(z, factor);
    const float scale = sums.products / sums.squares;
    const float gain = sums.products * scale;
    if (gain <= best) continue;
    best = gain;
    best_scale = scale;
    best_factor = factor;
  }
  group.scale = fp16_from_float(best_scale * largest);
  const std::array<std::int32_t, kScaleGroup> nearest = nearest_magnitudes(z, best_factor);
  for (std::size_t i = 0; i < kScaleGroup; ++i) {
    const int code = std::signbit(values[i]) ? 7 - nearest[i] : 8 + nearest[i];
    group.codes[i] = static_cast<std::uint8_t>(code);
  }
  return group;
}

void encode_int4(const float* values, std::size_t count, Row row) {
  ASSERT(count % kScaleGroup == 0, "rows of 4-bit elements have whole groups");
  for (std::size_t g = 0; g < count / kScaleGroup; ++g) {
    const Int4Group group = encode_group(values + g * kScaleGroup);
    std::memcpy(row.scale + g * row.scale_step, &group.scale, sizeof group.scale);
    for (std::size_t i = 0; i < kInt4HalfStep; ++i) {
      const int both = group.codes[i] | group.codes[i + kInt4HalfStep] << 4;
      row.data[row.offset(g * kInt4HalfStep + i)] = static_cast<std::byte>(both);
    }
  }
}

float scale_of(Row row, std::size_t group = 0) {
  std::uint16_t scale = 0;
  std::memcpy(&scale, row.scale + group * row.scale_step, sizeof scale);
  return float_from_fp16(scale);
}

void decode_int8(Row row, std::size_t count, float* values) {
  const float scale = scale_of(row);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<std::int8_t>(row.data[row.offset(i)])) * scale;
  }
}

void decode_int4(Row row, std::size_t count, float* values) {
  const auto level = [](int u) { return static_cast<float>(kInt4Levels[u]); };
  for (std::size_t first = 0; first < count; first += kScaleGroup) {
    const float scale = scale_of(row, first / kScaleGroup);
    for (std::size_t i = 0; i < kInt4HalfStep; ++i) {
      const auto both = std::to_integer<int>(row.data[row.offset(first / 2 + i)]);
      values[first + i] = level(both & 15) * scale;
      values[first + i + kInt4HalfStep] = level(both >> 4) * scale;
    }
  }
}

}  // namespace

IntegerScale integer_scale(float largest) {
  // A quotient that is no normal number counts as 0, whether or not the thread flushes those.
  const float quotient = largest / kInt8CodeMax;
  const float exact = quotient < std::numeric_limits<float>::min() ? 0.0f : quotient;
  std::uint16_t scale = fp16_from_float(exact);
  if (float_from_fp16(scale) < exact) ++scale;  // the next one
  const float step = float_from_fp16(scale);
  return {scale, step > 0 ? 1 / step : 0.0f};
}

void encode_row(Element element, const float* values, std::size_t count, Row row) {
  switch (element) {
    case Element::kF32:
      return encode<float, unchanged>(values, count, row);
    case Element::kF16:
      return encode<std::uint16_t, fp16_from_float>(values, count, row);
    case Element::kBF16:
      return encode<std::uint16_t, bf16_from_float>(values, count, row);
    case Element::kE4M3:
      return encode_scaled(values, count, row);
    case Element::kE5M2:
      return encode<std::uint8_t, e5m2_from_float>(values, count, row);
    case Element::kInt8:
      return encode_int8(values, count, row);
    case Element::kInt4:
      return encode_int4(values, count, row);
  }
}

void decode_row(Element element, Row row, std::size_t count, float* values) {
  switch (element) {
    case Element::kF32:
      return decode<float, unchanged>(row, count, values);
    case Element::kF16:
      return decode<std::uint16_t, float_from_fp16>(row, count, values);
    case Element::kBF16:
      return decode<std::uint16_t, float_from_bf16>(row, count, values);
    case Element::kE4M3:
      return decode_scaled(row, count, values);
    case Element::kE5M2:
      return decode<std::uint8_t, float_from_e5m2>(row, count, values);
    case Element::kInt8:
      return decode_int8(row, count, values);
    case Element::kInt4:
      return decode_int4(row, count, values);
  }
}

}  // namespace pagoda::kv::memory
