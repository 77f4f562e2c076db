// A view gives kernels one layer's keys and values of one sequence, through its block table. It
// owns nothing and is valid while the pool and the table are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kv/ids.h"
#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

// One layer of a pool of pages.
struct LayerView {
  std::byte* pages = nullptr;  // page 0
  PageLayout layout;
  std::uint32_t layer = 0;  // within the group
};

// Entry b is the page of positions [b * block_tokens, (b + 1) * block_tokens). Entries whose
// tokens a layer no longer needs (before its window) are never read.
using BlockTable = const BlockId*;

// A block table cut to one layer: where the rows of a position are.
struct SequenceView {
  LayerView layer;
  BlockTable blocks = nullptr;

  Row key_row(std::uint32_t head, std::uint64_t position) const {
    return layer.layout.key_row(page_of(position), layer.layer, head, token_of(position));
  }
  Row value_row(std::uint32_t head, std::uint64_t position) const {
    return layer.layout.value_row(page_of(position), layer.layer, head, token_of(position));
  }

  // Zeros the bytes that the page of a position leaves unused.
  void clear_unused(std::uint64_t position) const {
    const std::size_t unused = layer.layout.unused_bytes;
    std::memset(page_of(position) + layer.layout.page_bytes() - unused, 0, unused);
  }

 private:
  std::byte* page_of(std::uint64_t position) const {
    return layer.pages +
           blocks[position / layer.layout.block_tokens].value() * layer.layout.page_bytes();
  }
  std::uint32_t token_of(std::uint64_t position) const {
    return static_cast<std::uint32_t>(position % layer.layout.block_tokens);
  }
};

}  // namespace pagoda::kv::memory
