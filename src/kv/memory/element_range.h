// Which numbers a cache's element has: one rule for queries, keys and values, on CPUs and on GPUs
// (kernels/ops.h says what becomes of the others). Queries are not kept, but they meet keys of the
// element, and a model that needs larger ones needs another element: they have the same bounds,
// also where kernels keep them in fp16 beside an 8-bit cache. Integers are bounded lower on GPUs.
// Device code includes this.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// The largest magnitude of a row of kE4M3 (codec.h): larger ones would be cut off.
inline constexpr float kE4M3RowMax = 57344.0f;  // 448 * 2^7
inline constexpr float kFp16Max = 65504.0f;

constexpr float next_above(float positive) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(positive) + 1);
}

// The smallest magnitude that the element has no number for. Of fp16, bf16 and E5M2 that is halfway
// from the largest number to the next power of two: ties go to the even one, which is infinite.
constexpr float first_infinite(Element element) {
  switch (element) {
    case Element::kF32:
      break;
    case Element::kF16:
      return 65520.0f;
    case Element::kBF16:
      return 0x1.FFp127f;
    case Element::kE4M3:
      return next_above(kE4M3RowMax);
    case Element::kE5M2:
      return 61440.0f;
    case Element::kInt8:
      return next_above(127 * kFp16Max);  // whose scale would be infinite
    case Element::kInt4:
      return next_above(15 * kFp16Max);  // whose scale is finite, whatever its group
  }
  return std::numeric_limits<float>::infinity();
}

// The same on a GPU, which multiplies integers as fp16 numbers: those of a row of int4 may be a
// sixth larger than what they stand for.
constexpr float first_infinite_on_gpu(Element element) {
  return is_integer(element) ? 0x1p15f : first_infinite(element);
}

// GPUs keep keys and values of one element but kF32, int8 keys with int4 values, or 16-bit
// keys with values of int8 or E4M3.
constexpr bool is_gpu_pair(Elements elements) {
  const Element values = elements.values;
  if (elements.keys == values) return values != Element::kF32;
  if (elements.keys == Element::kInt8) return values == Element::kInt4;
  const bool is_wide = elements.keys == Element::kBF16 || elements.keys == Element::kF16;
  return is_wide && (values == Element::kInt8 || values == Element::kE4M3);
}

}  // namespace pagoda::kv::memory
