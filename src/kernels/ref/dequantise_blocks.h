// One block of each quantised type to floats. Every function reads the type's block_bytes from
// `block`, which need not be aligned, and writes its block_elements to `out`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace pagoda::kernels::ref {

template <class T>
T load_unaligned(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

inline unsigned load_byte(const std::byte* at) { return std::to_integer<unsigned>(*at); }

inline float load_fp16(const std::byte* at) {
  return float_from_fp16(load_unaligned<std::uint16_t>(at));
}

// The sixteen values a 4-bit code of IQ4_NL and IQ4_XS stands for.
inline constexpr float kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

// Twice the values of e2m1, the 4-bit floats of MXFP4 and NVFP4.
inline constexpr float kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(exponent - 128), half of MXFP4's scale; the two smallest are subnormal floats.
inline float half_of_e8m0(unsigned exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

// dequantise_legacy.cc: 32 elements with one scale
void dequantise_q4_0(const std::byte* block, float* out);
void dequantise_q4_1(const std::byte* block, float* out);
void dequantise_q5_0(const std::byte* block, float* out);
void dequantise_q5_1(const std::byte* block, float* out);
void dequantise_q8_0(const std::byte* block, float* out);
void dequantise_iq4_nl(const std::byte* block, float* out);

// dequantise_k.cc: 256 elements, two levels of scales
void dequantise_q2_k(const std::byte* block, float* out);
void dequantise_q3_k(const std::byte* block, float* out);
void dequantise_q4_k(const std::byte* block, float* out);
void dequantise_q5_k(const std::byte* block, float* out);
void dequantise_q6_k(const std::byte* block, float* out);
void dequantise_iq4_xs(const std::byte* block, float* out);

// dequantise_small.cc: micro-scaled floats, and codes of one to two bits
void dequantise_mxfp4(const std::byte* block, float* out);
void dequantise_nvfp4(const std::byte* block, float* out);
void dequantise_q1_0(const std::byte* block, float* out);
void dequantise_q2_0(const std::byte* block, float* out);
void dequantise_tq1_0(const std::byte* block, float* out);
void dequantise_tq2_0(const std::byte* block, float* out);

}  // namespace pagoda::kernels::ref
