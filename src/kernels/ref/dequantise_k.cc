// Blocks of 256 elements with scales on two levels: a float for the block, a small integer for
// each group of 16 or 32 elements. "g" is a group.
//
//   Q2_K    scales:16 | codes:64 | d:f16 | dmin:f16               16 g of 16
//   Q3_K    high:32 | codes:64 | scales:12 | d:f16                16 g of 16
//   Q4_K    d:f16 | dmin:f16 | scales:12 | codes:128               8 g of 32
//   Q5_K    d:f16 | dmin:f16 | scales:12 | high:32 | codes:128     8 g of 32
//   Q6_K    low:128 | high:64 | scales:16 x i8 | d:f16            16 g of 16
//   IQ4_XS  d:f16 | scales_high:u16 | scales_low:4 | codes:128     8 g of 32
#include "kernels/ref/dequantise_blocks.h"

namespace pagoda::kernels::ref {
namespace {

struct GroupScale {
  float scale;
  float minimum;
};

// Group `g` of the 8 whose scales and minima, 6 bits each, share 12 bytes (Q4_K, Q5_K):
//
//   byte 0-3   bits 0-5 scale g        bits 6-7 top of scale g + 4
//   byte 4-7   bits 0-5 minimum g      bits 6-7 top of minimum g + 4
//   byte 8-11  bits 0-3 low of scale g + 4, bits 4-7 low of minimum g + 4
GroupScale packed_scale(const std::byte* block, const std::byte* packed, int g) {
  const float d = load_fp16(block);
  const float dmin = load_fp16(block + 2);
  unsigned scale = 0;
  unsigned minimum = 0;
  if (g < 4) {
    scale = load_byte(packed + g) & 63;
    minimum = load_byte(packed + g + 4) & 63;
  } else {
    const unsigned low = load_byte(packed + g + 4);
    scale = (low & 15) | (load_byte(packed + g - 4) >> 6) << 4;
    minimum = low >> 4 | (load_byte(packed + g) >> 6) << 4;
  }
  return {d * static_cast<float>(scale), dmin * static_cast<float>(minimum)};
}

// The 2-bit code of element `index` of 256 (Q2_K, Q3_K): each half of 128 elements has 32 bytes,
// and bits 2j, 2j + 1 of them are its elements 32j to 32j + 31.
unsigned two_bits(const std::byte* codes, int index) {
  const int half = index / 128;
  const int j = index % 128 / 32;
  return load_byte(codes + 32 * half + index % 32) >> (2 * j) & 3;
}

// Scale `g` of 16, 6 bits each in 12 bytes (Q3_K): four low bits in the nibbles of bytes 0-7 (low
// nibbles first), two high bits in bytes 8-11 at shift 2 * (g / 4).
int six_bit_scale(const std::byte* packed, int g) {
  const unsigned low = load_byte(packed + g % 8) >> (g < 8 ? 0 : 4) & 15;
  const unsigned high = load_byte(packed + 8 + g % 4) >> (2 * (g / 4)) & 3;
  return static_cast<int>(low | high << 4);
}

// The 4-bit code of element `l` of group `g` of 8 (Q4_K, Q5_K): groups 2p and 2p + 1 are the low
// and the high nibbles of bytes 32p to 32p + 31.
unsigned paired_nibble(const std::byte* codes, int g, int l) {
  return load_byte(codes + 32 * (g / 2) + l) >> (4 * (g % 2)) & 15;
}

}  // namespace

void dequantise_q2_k(const std::byte* block, float* out) {
  const std::byte* const codes = block + 16;
  const float d = load_fp16(block + 80);
  const float dmin = load_fp16(block + 82);
  for (int g = 0; g < 16; ++g) {
    const unsigned packed = load_byte(block + g);
    const float scale = d * static_cast<float>(packed & 15);
    const float minimum = dmin * static_cast<float>(packed >> 4);
    for (int index = 16 * g; index < 16 * g + 16; ++index) {
      out[index] = scale * static_cast<float>(two_bits(codes, index)) - minimum;
    }
  }
}

void dequantise_q3_k(const std::byte* block, float* out) {
  const std::byte* const codes = block + 32;
  const std::byte* const scales = block + 96;
  const float d = load_fp16(block + 108);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(six_bit_scale(scales, g) - 32);
    for (int index = 16 * g; index < 16 * g + 16; ++index) {
      // A set bit means that nothing is subtracted.
      const unsigned high = load_byte(block + index % 32) >> (index / 32) & 1;
      const int code = static_cast<int>(two_bits(codes, index)) - (high != 0 ? 0 : 4);
      out[index] = scale * static_cast<float>(code);
    }
  }
}

void dequantise_q4_k(const std::byte* block, float* out) {
  for (int g = 0; g < 8; ++g) {
    const GroupScale group = packed_scale(block, block + 4, g);
    for (int l = 0; l < 32; ++l) {
      const unsigned code = paired_nibble(block + 16, g, l);
      out[32 * g + l] = group.scale * static_cast<float>(code) - group.minimum;
    }
  }
}

void dequantise_q5_k(const std::byte* block, float* out) {
  for (int g = 0; g < 8; ++g) {
    const GroupScale group = packed_scale(block, block + 4, g);
    for (int l = 0; l < 32; ++l) {
      const unsigned high = load_byte(block + 16 + l) >> g & 1;
      const unsigned code = paired_nibble(block + 48, g, l) | high << 4;
      out[32 * g + l] = group.scale * static_cast<float>(code) - group.minimum;
    }
  }
}

// Each half of 128 elements has 64 bytes of low nibbles and 32 of high bit pairs. Its element
// 32j + l takes the nibble of low byte 32 * (j % 2) + l (low nibble for j < 2), and bits 2j,
// 2j + 1 of high byte l.
void dequantise_q6_k(const std::byte* block, float* out) {
  const std::byte* const high_bits = block + 128;
  const std::byte* const scales = block + 192;
  const float d = load_fp16(block + 208);
  for (int index = 0; index < 256; ++index) {
    const int half = index / 128;
    const int j = index % 128 / 32;
    const int l = index % 32;
    const unsigned low = load_byte(block + 64 * half + 32 * (j % 2) + l) >> (4 * (j / 2)) & 15;
    const unsigned high = load_byte(high_bits + 32 * half + l) >> (2 * j) & 3;
    const int code = static_cast<int>(low | high << 4) - 32;
    const float scale = d * static_cast<float>(load_unaligned<std::int8_t>(scales + index / 16));
    out[index] = scale * static_cast<float>(code);
  }
}

// Group g has 16 bytes of codes: element l is the low nibble of byte l, l + 16 the high one. Its
// scale is nibble g of scales_low with bits 2g, 2g + 1 of scales_high on top.
void dequantise_iq4_xs(const std::byte* block, float* out) {
  const float d = load_fp16(block);
  const unsigned scales_high = load_unaligned<std::uint16_t>(block + 2);
  for (int g = 0; g < 8; ++g) {
    const unsigned low = load_byte(block + 4 + g / 2) >> (4 * (g % 2)) & 15;
    const unsigned high = scales_high >> (2 * g) & 3;
    const float scale = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    const std::byte* const codes = block + 8 + 16 * g;
    for (int l = 0; l < 16; ++l) {
      const unsigned byte = load_byte(codes + l);
      out[32 * g + l] = scale * kIq4Values[byte & 15];
      out[32 * g + l + 16] = scale * kIq4Values[byte >> 4];
    }
  }
}

}  // namespace pagoda::kernels::ref
