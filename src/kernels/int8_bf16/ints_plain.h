// kernels/int8_bf16/ints.h in plain C++.
#pragma once

#include <iterator>
#include <type_traits>

#include "kernels/int8_bf16/simd.h"
#include "kernels/ref/integer_gemm.h"

namespace pagoda::kernels::PAGODA_ISA {

inline constexpr int kNibbleRows = 4;
inline constexpr int kByteRows = 4;

struct I32x16 {
  std::int32_t v[kLanes];
};
struct I64x16 {
  std::int64_t v[kLanes];
};
struct Codes64 {
  std::uint8_t v[4 * kLanes];
};
struct Words16 {
  std::int16_t v[kLanes];
};

template <class T, class Make>
[[gnu::always_inline]] inline T each(Make make) {
  T result;
  for (std::size_t i = 0; i < std::size(result.v); ++i) {
    result.v[i] = static_cast<std::remove_reference_t<decltype(result.v[0])> >(make(i));
  }
  return result;
}

inline I32x16 no_sums() { return {}; }
inline I64x16 no_wide_sums() { return {}; }
inline I32x16 broadcast_sum(std::int32_t x) {
  return each<I32x16>([&](std::size_t) { return x; });
}
inline I32x16 load_sums(const void* p) {
  I32x16 sums;
  __builtin_memcpy(sums.v, p, sizeof(sums.v));
  return sums;
}
// Modulo 2^32, as vectors add.
inline I32x16 operator+(const I32x16& a, const I32x16& b) {
  return each<I32x16>([&](std::size_t i) {
    return static_cast<std::uint32_t>(a.v[i]) + static_cast<std::uint32_t>(b.v[i]);
  });
}
template <int Bits>
inline I32x16 shift_left(const I32x16& a) {
  return each<I32x16>([&](std::size_t i) { return static_cast<std::uint32_t>(a.v[i]) << Bits; });
}
template <int Bits>
inline I32x16 shift_right(const I32x16& a) {
  return each<I32x16>([&](std::size_t i) { return a.v[i] >> Bits; });
}

inline Codes64 load_codes(const std::byte* p) {
  Codes64 c;
  __builtin_memcpy(c.v, p, sizeof(c.v));
  return c;
}
inline Codes64 low_nibbles(const Codes64& c) {
  return each<Codes64>([&](std::size_t i) { return c.v[i] & 15; });
}
inline Codes64 high_nibbles(const Codes64& c) {
  return each<Codes64>([&](std::size_t i) { return c.v[i] >> 4; });
}

inline I32x16 add_products(I32x16 sums, const Codes64& c, const std::int8_t* x) {
  for (std::size_t n = 0; n < kLanes; ++n) {
    for (std::size_t i = 0; i < 4; ++i) sums.v[n] += c.v[4 * n + i] * x[i];
  }
  return sums;
}

inline Words16 words_at(const std::byte* p, std::size_t stride) {
  return each<Words16>([&](std::size_t i) {
    std::int16_t word;
    __builtin_memcpy(&word, p + i * stride, sizeof(word));
    return word;
  });
}
inline Words16 load_words(const std::byte* p) { return words_at(p, 2); }
inline Words16 load_first_words(const std::byte* p) { return words_at(p, 4); }
inline Words16 load_second_words(const std::byte* p) { return words_at(p + 2, 4); }
inline Words16 times(const Words16& a, std::int16_t factor) {
  return each<Words16>([&](std::size_t i) { return a.v[i] * factor; });
}
inline I32x16 to_sums(const Words16& a) {
  return each<I32x16>([&](std::size_t i) { return a.v[i]; });
}

struct NibbleLine {
  Codes64 first;
  Codes64 second;
};
inline NibbleLine split_nibbles(const Codes64& both) {
  return {low_nibbles(both), high_nibbles(both)};
}
struct NibbleProducts {
  I32x16 sums;
};
inline NibbleProducts no_nibble_products() { return {}; }
inline NibbleProducts add_products(const NibbleProducts& products, const NibbleLine& line,
                                   const std::int8_t* x) {
  return {add_products(add_products(products.sums, line.first, x), line.second, x + 16)};
}
// Modulo 2^32, which the result is below.
inline I32x16 add_group(const I32x16& sums, const NibbleProducts& products, const Words16& scale,
                        const Words16& zero_point, const std::int16_t* x_sums) {
  const std::int32_t x_sum = x_sums[0] + x_sums[1];
  return each<I32x16>([&](std::size_t i) {
    const std::int32_t group = products.sums.v[i] * scale.v[i] + x_sum * zero_point.v[i];
    return static_cast<std::uint32_t>(sums.v[i]) + static_cast<std::uint32_t>(group);
  });
}

struct ByteFactors {};
inline const std::int8_t* byte_factors(const std::int8_t* limbs, ByteFactors&) { return limbs; }
using ByteLine = Codes64;
inline ByteLine split_bytes(const Codes64& codes) { return codes; }
struct ByteProducts {
  I32x16 high;
  I32x16 low;
};
inline ByteProducts no_byte_products() { return {}; }
inline ByteProducts add_products(const ByteProducts& sums, const ByteLine& line,
                                 const std::int8_t* limbs, std::size_t index) {
  return {add_products(sums.high, line, limbs + 4 * index),
          add_products(sums.low, line, limbs + kBlockK + 4 * index)};
}
inline I32x16 to_sums(const ByteProducts& products) {
  return shift_left<kLimbBits>(products.high) + products.low;
}

inline I64x16 add_products(I64x16 sums, const I32x16& a, const I32x16& b) {
  for (std::size_t n = 0; n < kLanes; ++n) sums.v[n] += std::int64_t{a.v[n]} * b.v[n];
  return sums;
}

inline F32x16 floats_of(const I64x16& sums) {
  return each_lane([&](std::size_t i) { return ref::float_of_sum(sums.v[i]); });
}
inline F32x16 floats_of(const I32x16& high, const I32x16& low) {
  return each_lane([&](std::size_t i) {
    return ref::float_of_sum(std::int64_t{high.v[i]} * (1 << 24) + (low.v[i] & 0xFFFFFF));
  });
}

inline void split_line(const Codes64& codes, const Words16& scale, const Words16& zero_point,
                       std::byte* high, std::byte* low) {
  for (std::size_t i = 0; i < 4 * kLanes; ++i) {
    const int weight = codes.v[i] * scale.v[i / 4] + zero_point.v[i / 4];
    high[i] = static_cast<std::byte>(weight >> 8);
    low[i] = static_cast<std::byte>(weight);
  }
}
inline void split_wide_line(const Codes64& codes, const Words16& scale, std::byte* high,
                            std::byte* middle, std::byte* low) {
  for (std::size_t i = 0; i < 4 * kLanes; ++i) {
    const int weight = (codes.v[i] - 128) * scale.v[i / 4];
    high[i] = static_cast<std::byte>(weight >> 16);
    middle[i] = static_cast<std::byte>(weight >> 8);
    low[i] = static_cast<std::byte>(weight);
  }
}

}  // namespace pagoda::kernels::PAGODA_ISA
