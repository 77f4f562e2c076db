#include "gguf/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/half.h"

namespace pagoda::gguf {
namespace {

constexpr int kBlock = 32;

// The value of a block whose magnitude is largest, the first of several; NaN where one is not
// finite.
float largest_value(const float* values) {
  float largest = values[0];
  bool finite = true;
  for (int i = 0; i < kBlock; ++i) {
    finite = finite && std::isfinite(values[i]);
    if (std::fabs(values[i]) > std::fabs(largest)) largest = values[i];
  }
  return finite ? largest : std::numeric_limits<float>::quiet_NaN();
}

// Writes a scale in half precision. False when it is not finite there.
bool store_scale(float scale, std::byte* to) {
  const std::uint16_t bits = fp16_from_float(scale);
  std::memcpy(to, &bits, sizeof(bits));
  return (bits & 0x7C00u) != 0x7C00u;
}

// 0 for a scale whose inverse is no float: half precision rounds it to 0.
float inverse_of(float scale) {
  const float inverse = 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

// The exponent of infinities and NaNs, in 16 bits of either type.
constexpr std::uint16_t kF16Ends = 0x7C00;
constexpr std::uint16_t kBF16Ends = 0x7F80;

bool round_row(TensorType type, std::span<const float> values, std::byte* to) {
  const bool is_f16 = type == TensorType::kF16;
  const std::uint16_t ends = is_f16 ? kF16Ends : kBF16Ends;
  bool fits = true;
  for (const float value : values) {
    const std::uint16_t bits = is_f16 ? fp16_from_float(value) : bf16_from_float(value);
    fits = fits && (bits & ends) != ends;
    std::memcpy(to, &bits, sizeof(bits));
    to += sizeof(bits);
  }
  return fits;
}

bool copy_row(std::span<const float> values, std::byte* to) {
  std::memcpy(to, values.data(), values.size_bytes());
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

}  // namespace

bool quantise_q8_0(const float* values, std::byte* block) {
  const float scale = std::fabs(largest_value(values)) / 127.0f;
  if (!store_scale(scale, block)) return false;
  const float inverse = inverse_of(scale);
  for (int i = 0; i < kBlock; ++i) {
    const float scaled = values[i] * inverse;
    const int whole = static_cast<int>(scaled);
    const float rest = scaled - static_cast<float>(whole);
    const int away = (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
    block[2 + i] = static_cast<std::byte>(whole + away);
  }
  return true;
}

bool quantise_q4_0(const float* values, std::byte* block) {
  const float scale = largest_value(values) / -8.0f;
  if (!store_scale(scale, block)) return false;
  const float inverse = inverse_of(scale);
  const auto code = [&](int i) {
    const int whole = static_cast<int>(values[i] * inverse + 8.5f);
    return static_cast<unsigned>(whole > 15 ? 15 : whole);
  };
  for (int i = 0; i < kBlock / 2; ++i) {
    block[2 + i] = static_cast<std::byte>(code(i) | code(i + kBlock / 2) << 4);
  }
  return true;
}

bool quantise_row(TensorType type, std::span<const float> values, std::byte* blocks) {
  if (type == TensorType::kF32) return copy_row(values, blocks);
  if (type == TensorType::kF16 || type == TensorType::kBF16) return round_row(type, values, blocks);
  const bool is_q8_0 = type == TensorType::kQ8_0;
  ASSERT(is_q8_0 || type == TensorType::kQ4_0 || type == TensorType::kQ4_K,
         "only floats, Q8_0, Q4_0 and Q4_K are written");
  auto* const quantise = is_q8_0                     ? quantise_q8_0
                         : type == TensorType::kQ4_0 ? quantise_q4_0
                                                     : quantise_q4_k;
  const TensorTypeInfo& info = tensor_type_info(type);
  ASSERT(values.size() % info.block_elements == 0, "a row is whole blocks");
  for (std::size_t at = 0; at < values.size(); at += info.block_elements) {
    if (!quantise(values.data() + at, blocks)) return false;
    blocks += info.block_bytes;
  }
  return true;
}

}  // namespace pagoda::gguf
