// Micro-scaled 4-bit floats, and codes of one to two bits.
//
//   MXFP4  e:u8 | codes:16            32 elements   2^(e - 128) * kFp4Doubled[q]
//   NVFP4  scales:4 x ue4m3 | codes:32   64         s / 2 * kFp4Doubled[q], four groups of 16
//   Q1_0   d:f16 | bits:16           128            bit ? d : -d, lowest bit first
//   Q2_0   d:f16 | codes:16           64            d * (q - 1), lowest pair first
//   TQ1_0  trits:48 | trits:4 | d    256            d * (t - 1)
//   TQ2_0  codes:64 | d:f16          256            d * (q - 1)
//
// kFp4Doubled holds twice the values of e2m1, so both scales are halved.
#include <bit>

#include "kernels/ref/dequantise_blocks.h"

namespace pagoda::kernels::ref {
namespace {

// Half of an unsigned 8-bit float: 4 bits of exponent (bias 7), 3 of mantissa; bit 7 is ignored
// and the NaN pattern counts as 0.
float half_of_ue4m3(unsigned bits) {
  if (bits == 0x7F) return 0.0f;
  const unsigned exponent = bits >> 3 & 15;
  const float mantissa = static_cast<float>(bits & 7);
  if (exponent == 0) return mantissa * 0x1.0p-10f;
  const float power = std::bit_cast<float>((exponent + 127 - 7) << 23);
  return (1.0f + mantissa / 8.0f) * power * 0.5f;
}

float trit_value(float scale, unsigned byte, unsigned power) {
  // The byte is a fraction of 256: multiplying by 3^n moves trit n to the front, where * 3 / 256
  // reads it.
  const unsigned moved = byte * power & 0xFF;
  return scale * static_cast<float>(static_cast<int>(moved * 3 >> 8) - 1);
}

}  // namespace

void dequantise_mxfp4(const std::byte* block, float* out) {
  const float scale = half_of_e8m0(load_byte(block));
  for (int j = 0; j < 16; ++j) {
    const unsigned byte = load_byte(block + 1 + j);
    out[j] = scale * kFp4Doubled[byte & 15];
    out[j + 16] = scale * kFp4Doubled[byte >> 4];
  }
}

void dequantise_nvfp4(const std::byte* block, float* out) {
  for (int g = 0; g < 4; ++g) {
    const float scale = half_of_ue4m3(load_byte(block + g));
    for (int j = 0; j < 8; ++j) {
      const unsigned byte = load_byte(block + 4 + 8 * g + j);
      out[16 * g + j] = scale * kFp4Doubled[byte & 15];
      out[16 * g + j + 8] = scale * kFp4Doubled[byte >> 4];
    }
  }
}

void dequantise_q1_0(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  for (int j = 0; j < 128; ++j) {
    const unsigned bit = load_byte(block + 2 + j / 8) >> (j % 8) & 1;
    out[j] = bit != 0 ? scale : -scale;
  }
}

void dequantise_q2_0(const std::byte* block, float* out) {
  const float scale = load_fp16(block);
  for (int j = 0; j < 64; ++j) {
    const unsigned code = load_byte(block + 2 + j / 4) >> (2 * (j % 4)) & 3;
    out[j] = scale * static_cast<float>(static_cast<int>(code) - 1);
  }
}

// Three runs of bytes, five trits a byte (four in the last run), all first trits of a run before
// all second ones: bytes 0-31 give elements 0-159, 32-47 give 160-239, 48-51 give 240-255.
void dequantise_tq1_0(const std::byte* block, float* out) {
  constexpr unsigned kPowers[5] = {1, 3, 9, 27, 81};
  struct Run {
    int begin;
    int bytes;
    int trits;
  };
  constexpr Run kRuns[3] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
  const float scale = load_fp16(block + 52);
  for (const Run& run : kRuns) {
    for (int n = 0; n < run.trits; ++n) {
      for (int m = 0; m < run.bytes; ++m) {
        *out++ = trit_value(scale, load_byte(block + run.begin + m), kPowers[n]);
      }
    }
  }
}

// Two runs of 32 bytes, each 128 elements: bits 2j, 2j + 1 are elements 32j to 32j + 31.
void dequantise_tq2_0(const std::byte* block, float* out) {
  const float scale = load_fp16(block + 64);
  for (int index = 0; index < 256; ++index) {
    const int run = index / 128;
    const int j = index % 128 / 32;
    const unsigned code = load_byte(block + 32 * run + index % 32) >> (2 * j) & 3;
    out[index] = scale * static_cast<float>(static_cast<int>(code) - 1);
  }
}

}  // namespace pagoda::kernels::ref
