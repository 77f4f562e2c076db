#include "kv/memory/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/e4m3.h"
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

}  // namespace

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
  }
}

}  // namespace pagoda::kv::memory
