// Blocks of 32 elements with one scale. Codes of four bits stand in "split" order: byte j holds
// element j in its low nibble and element j + 16 in its high one.
//
//   Q4_0    d:f16 | codes:16                       d * (q - 8)
//   Q4_1    d:f16 | m:f16 | codes:16               d * q + m
//   Q5_0    d:f16 | fifth:u32 | codes:16           d * (q - 16)
//   Q5_1    d:f16 | m:f16 | fifth:u32 | codes:16   d * q + m
//   Q8_0    d:f16 | codes:32 x i8                  d * q
//   IQ4_NL  d:f16 | codes:16                       d * kIq4Values[q]
//
// Bit j of `fifth` is bit 4 of element j.
#include "kernels/ref/dequantise_blocks.h"

namespace pagoda::kernels::ref {
namespace {

constexpr int kElements = 32;

// Element `index` of 32 codes of four bits in split order.
unsigned nibble(const std::byte* codes, int index) {
  const unsigned byte = load_byte(codes + index % 16);
  return index < 16 ? byte & 15 : byte >> 4;
}

unsigned five_bits(const std::byte* codes, std::uint32_t fifth, int index) {
  return nibble(codes, index) | ((fifth >> index) & 1) << 4;
}

float centred(unsigned code, int zero) { return static_cast<float>(static_cast<int>(code) - zero); }

}  // namespace

void dequantise_q4_0(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  for (int j = 0; j < kElements; ++j) out[j] = scale * centred(nibble(block + 2, j), 8);
}

void dequantise_q4_1(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  const float minimum = load_fp16(block + 2);
  for (int j = 0; j < kElements; ++j) {
    out[j] = scale * static_cast<float>(nibble(block + 4, j)) + minimum;
  }
}

void dequantise_q5_0(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  const std::uint32_t fifth = load_unaligned<std::uint32_t>(block + 2);
  for (int j = 0; j < kElements; ++j) out[j] = scale * centred(five_bits(block + 6, fifth, j), 16);
}

void dequantise_q5_1(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  const float minimum = load_fp16(block + 2);
  const std::uint32_t fifth = load_unaligned<std::uint32_t>(block + 4);
  for (int j = 0; j < kElements; ++j) {
    out[j] = scale * static_cast<float>(five_bits(block + 8, fifth, j)) + minimum;
  }
}

void dequantise_q8_0(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  for (int j = 0; j < kElements; ++j) {
    out[j] = scale * static_cast<float>(load_unaligned<std::int8_t>(block + 2 + j));
  }
}

void dequantise_iq4_nl(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  for (int j = 0; j < kElements; ++j) out[j] = scale * kIq4Values[nibble(block + 2, j)];
}

}  // namespace pagoda::kernels::ref
