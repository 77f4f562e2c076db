// How the bytes of one page are arranged.
//
// A page holds one block of tokens for one slice of layers:
//
//   page = layer 0: K head 0 [token][key_dim], K head 1 …, V head 0 [token][value_dim], …
//          layer 1: …
//
// All rows of one head stand together, so that a kernel walks a head's tokens with one stride,
// and all layers of a slice stand together, so that one page is one copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::kv::memory {

enum class Element : std::uint8_t { kF32, kF16, kBF16 };

constexpr std::size_t element_bytes(Element element) { return element == Element::kF32 ? 4 : 2; }

struct PageLayout {
  Element element = Element::kF16;
  std::uint32_t block_tokens = 16;
  std::uint32_t layers = 0;  // in the slice
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;

  constexpr std::size_t key_row_bytes() const { return key_dim * element_bytes(element); }
  constexpr std::size_t value_row_bytes() const { return value_dim * element_bytes(element); }
  constexpr std::size_t layer_bytes() const {
    return std::size_t{kv_heads} * block_tokens * (key_row_bytes() + value_row_bytes());
  }
  constexpr std::size_t page_bytes() const { return layers * layer_bytes(); }
  constexpr std::size_t bytes_per_token() const { return page_bytes() / block_tokens; }

  // Offsets within a page of the row of `token` (0 to block_tokens - 1).
  constexpr std::size_t key_offset(std::uint32_t layer, std::uint32_t head,
                                   std::uint32_t token) const {
    return layer * layer_bytes() + (std::size_t{head} * block_tokens + token) * key_row_bytes();
  }
  constexpr std::size_t value_offset(std::uint32_t layer, std::uint32_t head,
                                     std::uint32_t token) const {
    return layer * layer_bytes() + std::size_t{kv_heads} * block_tokens * key_row_bytes() +
           (std::size_t{head} * block_tokens + token) * value_row_bytes();
  }
};

}  // namespace pagoda::kv::memory
