// Which numbers a cache's element has: one rule for queries, keys and values, on CPUs and on GPUs
// (kernels/ops.h says what becomes of the others). Queries are not kept, but they meet keys of the
// element, and a model that needs larger ones needs another element: they have the same bounds,
// also where kernels keep them in fp16 beside an 8-bit cache. Device code includes this.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// The largest magnitude of a row of kE4M3 (codec.h): larger ones would be cut off.
inline constexpr float kE4M3RowMax = 57344.0f;  // 448 * 2^7
inline constexpr float kE4M3FirstInfinite =
    std::bit_cast<float>(std::bit_cast<std::uint32_t>(kE4M3RowMax) + 1);

// The smallest magnitude that the element has no number for. Of fp16 and bf16 that is halfway from
// the largest number to the next power of two: ties go to the even one, which is infinite.
constexpr float first_infinite(Element element) {
  switch (element) {
    case Element::kF32:
      break;
    case Element::kF16:
      return 65520.0f;
    case Element::kBF16:
      return 0x1.FFp127f;
    case Element::kE4M3:
      return kE4M3FirstInfinite;
  }
  return std::numeric_limits<float>::infinity();
}

}  // namespace pagoda::kv::memory
