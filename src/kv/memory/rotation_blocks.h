// How rows are rotated before they are stored: rows of integers are multiplied by a Hadamard matrix
// in blocks of dimensions, a power of two, which spreads large values over their block.
#pragma once

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// Dimensions of a block; 0: rows are stored as they are.
struct RotationBlocks {
  std::uint32_t keys;
  std::uint32_t values;
};

// Values have smaller blocks than keys: what is large in one of them reaches fewer others.
inline constexpr std::uint32_t kValueRotationMax = 32;

// The largest power of two that divides the dimensions.
constexpr std::uint32_t rotation_block(Element element, std::uint32_t dimensions) {
  const std::uint32_t block = dimensions & (~dimensions + 1);
  return is_integer(element) && block > 1 ? block : 0;
}

// A latent is rotated once, so that its key and the value at its beginning have the same blocks:
// the largest power of two that divides both is that of all their bits. Device code calls this: it
// takes the address of no constant, as std::min would.
constexpr RotationBlocks rotation_blocks(const PageLayout& layout) {
  if (layout.values_in_keys) {
    const std::uint32_t block =
        rotation_block(layout.elements.keys, layout.key_dim | layout.value_dim);
    return {block, block};
  }
  const std::uint32_t values = rotation_block(layout.elements.values, layout.value_dim);
  return {rotation_block(layout.elements.keys, layout.key_dim),
          values < kValueRotationMax ? values : kValueRotationMax};
}

}  // namespace pagoda::kv::memory
