// kernels/int8_bf16/simd.h by NEON: sixteen floats are four registers.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

// Before a loop over registers.
#if defined(__clang__)
#define PAGODA_ISA_UNROLL _Pragma("unroll")
#else
#define PAGODA_ISA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace pagoda::kernels::PAGODA_ISA {

// Rows of x, each with two sums, whose sums and factors fit into the registers together.
inline constexpr int kRowsInRegisters = 2;

struct F32x16 {
  float32x4_t v[4];
};

template <class Make>
[[gnu::always_inline]] inline F32x16 each_quarter(Make make) {
  return {{make(0), make(1), make(2), make(3)}};
}

[[gnu::always_inline]] inline F32x16 broadcast(float x) {
  return each_quarter([&](int) { return vdupq_n_f32(x); });
}
[[gnu::always_inline]] inline F32x16 load(const float* p) {
  return each_quarter([&](int i) { return vld1q_f32(p + 4 * i); });
}
[[gnu::always_inline]] inline void store(float* p, const F32x16& a) {
  vst1q_f32(p, a.v[0]);
  vst1q_f32(p + 4, a.v[1]);
  vst1q_f32(p + 8, a.v[2]);
  vst1q_f32(p + 12, a.v[3]);
}
[[gnu::always_inline]] inline F32x16 operator+(const F32x16& a, const F32x16& b) {
  return each_quarter([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
[[gnu::always_inline]] inline F32x16 operator-(const F32x16& a, const F32x16& b) {
  return each_quarter([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
[[gnu::always_inline]] inline F32x16 operator*(const F32x16& a, const F32x16& b) {
  return each_quarter([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
[[gnu::always_inline]] inline F32x16 operator/(const F32x16& a, const F32x16& b) {
  return each_quarter([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
[[gnu::always_inline]] inline F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each_quarter([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}

// Like the instructions of x86: b where either is NaN.
[[gnu::always_inline]] inline F32x16 max(const F32x16& a, const F32x16& b) {
  return each_quarter([&](int i) { return vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
[[gnu::always_inline]] inline F32x16 min(const F32x16& a, const F32x16& b) {
  return each_quarter([&](int i) { return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}

// p[0], p[2], … and p[1], p[3], … of 32 floats
[[gnu::always_inline]] inline void load_pairs(const float* p, F32x16& first, F32x16& second) {
  const float32x4x2_t a = vld2q_f32(p);
  const float32x4x2_t b = vld2q_f32(p + 8);
  const float32x4x2_t c = vld2q_f32(p + 16);
  const float32x4x2_t d = vld2q_f32(p + 24);
  first = {{a.val[0], b.val[0], c.val[0], d.val[0]}};
  second = {{a.val[1], b.val[1], c.val[1], d.val[1]}};
}
[[gnu::always_inline]] inline void store_pairs(float* p, const F32x16& first,
                                               const F32x16& second) {
  const auto put = [&](int i) {
    const float32x4x2_t pairs = {{first.v[i], second.v[i]}};
    vst2q_f32(p + 8 * i, pairs);
  };
  put(0);
  put(1);
  put(2);
  put(3);
}

// 0 in lanes where x < limit, else value
[[gnu::always_inline]] inline F32x16 zero_where_below(const F32x16& x, float limit,
                                                      const F32x16& value) {
  return each_quarter([&](int i) {
    const uint32x4_t below = vcltq_f32(x.v[i], vdupq_n_f32(limit));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value.v[i]), below));
  });
}
// Adds the low bits of `steps` to the exponent of `value`.
[[gnu::always_inline]] inline F32x16 scale_by_power(const F32x16& value, const F32x16& steps) {
  return each_quarter([&](int i) {
    const uint32x4_t power = vshlq_n_u32(vreinterpretq_u32_f32(steps.v[i]), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(value.v[i]), power));
  });
}
// The same, 0 in lanes where x < limit.
[[gnu::always_inline]] inline F32x16 scale_by_power_above(const F32x16& x, float limit,
                                                          const F32x16& value,
                                                          const F32x16& steps) {
  return zero_where_below(x, limit, scale_by_power(value, steps));
}
// Lane i: bit i of `lanes` ? a : otherwise
[[gnu::always_inline]] inline F32x16 select(std::uint32_t lanes, const F32x16& a,
                                            const F32x16& otherwise) {
  constexpr std::uint32_t kBits[4] = {1, 2, 4, 8};
  const uint32x4_t bits = vld1q_u32(kBits);
  return each_quarter([&](int i) {
    const uint32x4_t taken = vtstq_u32(vdupq_n_u32(lanes >> (4 * i)), bits);
    return vbslq_f32(taken, a.v[i], otherwise.v[i]);
  });
}

[[gnu::always_inline]] inline float fold_max(const F32x16& a) {
  return vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(a.v[0], a.v[1]), vmaxnmq_f32(a.v[2], a.v[3])));
}
// l[i] += l[i + 8], l[i + 4], l[i + 2], l[i + 1] in turn
[[gnu::always_inline]] inline float fold_sum(const F32x16& a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// Rounded to bf16. NaN stays NaN; subnormals become zero within FlushSubnormals, which whoever
// rounds must have.
[[gnu::always_inline]] inline void store_bf16(std::uint16_t* p, const F32x16& a) {
  auto* const halves = reinterpret_cast<bfloat16_t*>(p);
  vst1q_bf16(halves, vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(a.v[0]), a.v[1]));
  vst1q_bf16(halves + 8, vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(a.v[2]), a.v[3]));
}
[[gnu::always_inline]] inline void store_bf16(std::uint16_t* p, const F32x16& low,
                                              const F32x16& high) {
  store_bf16(p, low);
  store_bf16(p + kLanes, high);
}

// Stores lanes as bf16 to every other half: p[0], p[2], …. The halves between stay untouched.
[[gnu::always_inline]] inline void store_bf16_apart(std::uint16_t* p, const F32x16& a) {
  alignas(16) std::uint16_t halves[kLanes];
  store_bf16(halves, a);
  for (std::size_t i = 0; i < kLanes; ++i) p[2 * i] = halves[i];
}

// While an object lives, the thread's floating point counts subnormals as zero: factors and
// results. Arm looks at a result before it rounds it, x86 afterwards: what rounds up to the
// smallest normal number is zero here and that number there. No other result differs.
class FlushSubnormals {
 public:
  FlushSubnormals() {
    constexpr std::uint64_t kFlushToZero = 1u << 24;
    asm volatile("mrs %0, fpcr" : "=r"(outer_));
    set(outer_ | kFlushToZero);
  }
  ~FlushSubnormals() { set(outer_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  static void set(std::uint64_t control) { asm volatile("msr fpcr, %0" ::"r"(control) : "memory"); }

  std::uint64_t outer_;
};
// FlushSubnormals sees to it.
inline float without_subnormals(float x) { return x; }
[[gnu::always_inline]] inline F32x16 without_subnormals(const F32x16& x) { return x; }

[[gnu::always_inline]] inline F32x16 load_fp16(const std::uint16_t* p) {
  const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(p));
  const float16x8_t high = vreinterpretq_f16_u16(vld1q_u16(p + 8));
  return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low),
           vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high)}};
}

[[gnu::always_inline]] inline F32x16 load_ints(const std::int32_t* p) {
  return each_quarter([&](int i) { return vcvtq_f32_s32(vld1q_s32(p + 4 * i)); });
}
// The nearest integers, ties to even, of numbers within 16 bits. NaN gives something.
[[gnu::always_inline]] inline void store_nearest(std::int16_t* p, const F32x16& a) {
  const auto words = [&](int i) { return vmovn_s32(vcvtnq_s32_f32(a.v[i])); };
  vst1q_s16(p, vcombine_s16(words(0), words(1)));
  vst1q_s16(p + 8, vcombine_s16(words(2), words(3)));
}

// Lane i: halves 2 i and 2 i + 1.
[[gnu::always_inline]] inline void load_bf16_pairs(const std::byte* p, F32x16& first,
                                                   F32x16& second) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(p);
  const uint32x4_t high = vdupq_n_u32(0xFFFF0000u);
  first = each_quarter(
      [&](int i) { return vreinterpretq_f32_u32(vshlq_n_u32(vld1q_u32(words + 4 * i), 16)); });
  second = each_quarter(
      [&](int i) { return vreinterpretq_f32_u32(vandq_u32(vld1q_u32(words + 4 * i), high)); });
}

// A register of zeros of its own: MOVI costs nothing, the copy GCC makes of zeros it has does.
[[gnu::always_inline]] inline float32x4_t fresh_zeros() {
  float32x4_t zeros;
  asm volatile("movi %0.4s, #0" : "=w"(zeros));
  return zeros;
}

// Prefetches a cache line. It is written in assembly, since GCC removes a function whose only
// effect is a prefetch builtin.
inline void fetch_line(const std::byte* p) { asm volatile("prfm pldl1keep, [%0]" ::"r"(p)); }

}  // namespace pagoda::kernels::PAGODA_ISA
