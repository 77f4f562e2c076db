// Weight rows to floats. The types that carry most models are vectorised; the others take the
// reference road. Same bits either way: each value is made by the same rounded operations.
#include <cstring>

#include "base/half.h"
#include "kernels/fp32/f32x8.h"
#include "kernels/fp32/kernels.h"
#include "kernels/ref/dequantise.h"

namespace pagoda::kernels::fp32 {
namespace {

float read_fp16(const std::byte* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, 2);
  return float_from_fp16(bits);
}

const std::uint8_t* as_bytes(const std::byte* p) {
  return reinterpret_cast<const std::uint8_t*>(p);
}

// Blocks of 32 values with an fp16 scale first.
constexpr std::size_t kGroupColumns = 32;

void unpack_q8_0(const std::byte* block, float* out) {
  const F32x8 d = broadcast(read_fp16(block));
  const auto* const q = reinterpret_cast<const std::int8_t*>(block + 2);
  for (std::size_t i = 0; i < kGroupColumns; i += kLanes) store(out + i, from_int8(q + i) * d);
}

void unpack_q4_0(const std::byte* block, float* out) {
  const F32x8 d = broadcast(read_fp16(block));
  const F32x8 middle = broadcast(8.0f);
  const std::uint8_t* const q = as_bytes(block + 2);
  for (std::size_t i = 0; i < kGroupColumns / 2; i += kLanes) {
    store(out + i, (from_low_nibbles(q + i) - middle) * d);
    store(out + i + 16, (from_high_nibbles(q + i) - middle) * d);
  }
}

void unpack_q4_1(const std::byte* block, float* out) {
  const F32x8 d = broadcast(read_fp16(block));
  const F32x8 m = broadcast(read_fp16(block + 2));
  const std::uint8_t* const q = as_bytes(block + 4);
  for (std::size_t i = 0; i < kGroupColumns / 2; i += kLanes) {
    store(out + i, from_low_nibbles(q + i) * d + m);
    store(out + i + 16, from_high_nibbles(q + i) * d + m);
  }
}

// The 6-bit scale and minimum of sub-block s in the 12 packed bytes of Q4_K.
struct ScaleMin {
  float scale;
  float minimum;
};
ScaleMin unpack_q4_k_scale(const std::uint8_t* b, std::size_t s) {
  if (s < 4) return {static_cast<float>(b[s] & 63), static_cast<float>(b[s + 4] & 63)};
  return {static_cast<float>((b[s + 4] & 15) | (b[s - 4] >> 6) << 4),
          static_cast<float>((b[s + 4] >> 4) | (b[s] >> 6) << 4)};
}

void unpack_q4_k(const std::byte* block, float* out) {
  const float d = read_fp16(block);
  const float dmin = read_fp16(block + 2);
  const std::uint8_t* const scales = as_bytes(block + 4);
  const std::uint8_t* q = as_bytes(block + 16);
  for (std::size_t pair = 0; pair < 4; ++pair, q += kGroupColumns, out += 2 * kGroupColumns) {
    const ScaleMin even = unpack_q4_k_scale(scales, 2 * pair);
    const ScaleMin odd = unpack_q4_k_scale(scales, 2 * pair + 1);
    for (std::size_t i = 0; i < kGroupColumns; i += kLanes) {
      store(out + i,
            from_low_nibbles(q + i) * broadcast(d * even.scale) - broadcast(dmin * even.minimum));
      store(out + kGroupColumns + i,
            from_high_nibbles(q + i) * broadcast(d * odd.scale) - broadcast(dmin * odd.minimum));
    }
  }
}

template <class UnpackBlock>
void unpack_blocks(const WeightMatrix& weight, const std::byte* row, float* out,
                   std::size_t elements, std::size_t bytes, UnpackBlock unpack) {
  for (std::size_t i = 0; i < weight.columns; i += elements, row += bytes) unpack(row, out + i);
}

template <class Load>
void unpack_halves(const std::byte* row, float* out, std::size_t count, Load load_eight,
                   float (*convert)(std::uint16_t)) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, load_eight(row + 2 * i));
  for (; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, row + 2 * i, 2);
    out[i] = convert(bits);
  }
}

}  // namespace

void unpack_row(const WeightMatrix& weight, std::size_t row_index, float* out) {
  const std::byte* const row = weight.data + row_index * weight.row_bytes;
  switch (weight.type) {
    case gguf::TensorType::kF32:
      std::memcpy(out, row, weight.columns * sizeof(float));
      return;
    case gguf::TensorType::kF16:
      return unpack_halves(row, out, weight.columns, load_fp16, float_from_fp16);
    case gguf::TensorType::kBF16:
      return unpack_halves(row, out, weight.columns, load_bf16, float_from_bf16);
    case gguf::TensorType::kQ8_0:
      return unpack_blocks(weight, row, out, kGroupColumns, 34, unpack_q8_0);
    case gguf::TensorType::kQ4_0:
      return unpack_blocks(weight, row, out, kGroupColumns, 18, unpack_q4_0);
    case gguf::TensorType::kQ4_1:
      return unpack_blocks(weight, row, out, kGroupColumns, 20, unpack_q4_1);
    case gguf::TensorType::kQ4_K:
      return unpack_blocks(weight, row, out, 256, 144, unpack_q4_k);
    default:
      return ref::dequantise_row(weight.type, row, out, weight.columns);
  }
}

}  // namespace pagoda::kernels::fp32
