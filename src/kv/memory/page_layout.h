// How the bytes of one page are arranged.
//
// A page holds one block of tokens for one group of layers:
//
//   page = layer 0: K head 0 [token][key_dim], K head 1 …, V head 0, V head 1 …
//          layer 1: …
//          unused bytes, where groups of other layers need larger pages
//
//   K head = [token][key_dim]            rows, or
//            [key_dim / 2][token][2]     columns: dimensions 2i and 2i + 1 of all tokens side by
//                                        side, the right-hand side of a product with queries as
//                                        matrix units (AMX) read it; key_dim is even
//   V head = [token][value_dim]          rows, or
//            [token / 2][value_dim][2]   token pairs: tokens 2i and 2i + 1 element by element, the
//                                        right-hand side of a product with weights; the last token
//                                        of an odd block has no partner and is a row
//
// An element of 8 bits is a code of a number, which its row multiplies by one power of two, as
// fp16:
//
//   layer = K, V, then scales of K head 0 [token], K head 1 …, V head 0 …
//
// All rows of one head stand together, so that a kernel walks a head's tokens with one stride,
// and all layers of a group stand together, so that one page is one copy. All orders take the
// same bytes. A latent layer (MLA) keeps one row per token that all heads share: a value is the
// first value_dim elements of its key, and there is no V (values_in_keys).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pagoda::kv::memory {

enum class Element : std::uint8_t { kF32, kF16, kBF16, kE4M3 };
enum class KeyOrder : std::uint8_t { kRows, kColumns };
enum class ValueOrder : std::uint8_t { kRows, kTokenPairs };

constexpr std::size_t element_bytes(Element element) {
  return element == Element::kF32 ? 4 : element == Element::kE4M3 ? 1 : 2;
}
// Of a row.
constexpr std::size_t scale_bytes(Element element) { return element == Element::kE4M3 ? 2 : 0; }

// One token's row of one head: element i stands i / 2 * pair_step + i % 2 * step elements after the
// first.
struct Row {
  std::byte* data = nullptr;
  std::size_t step = 1;
  std::size_t pair_step = 2 * step;
  std::byte* scale = nullptr;  // where its element has one

  constexpr bool contiguous() const { return step == 1 && pair_step == 2; }
  constexpr std::size_t offset(std::size_t i) const { return i / 2 * pair_step + i % 2 * step; }
};

struct PageLayout {
  Element element = Element::kF16;
  std::uint32_t block_tokens = 16;
  std::uint32_t layers = 0;  // in the group
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  ValueOrder value_order = ValueOrder::kRows;
  KeyOrder key_order = KeyOrder::kRows;
  std::size_t unused_bytes = 0;  // at the page's end
  bool values_in_keys = false;   // a value is the first value_dim elements of its key

  auto operator<=>(const PageLayout&) const = default;

  constexpr std::size_t key_row_bytes() const { return key_dim * element_bytes(element); }
  constexpr std::size_t value_row_bytes() const { return value_dim * element_bytes(element); }
  constexpr std::size_t layer_bytes() const {
    const std::size_t values = values_in_keys ? 0 : value_row_bytes() + scale_bytes(element);
    return std::size_t{kv_heads} * block_tokens * (key_row_bytes() + scale_bytes(element) + values);
  }
  constexpr std::size_t page_bytes() const { return layers * layer_bytes() + unused_bytes; }
  constexpr std::size_t bytes_per_token() const { return page_bytes() / block_tokens; }

  // Offsets within a page of the first element of `token`'s row (0 to block_tokens - 1).
  constexpr std::size_t key_offset(std::uint32_t layer, std::uint32_t head,
                                   std::uint32_t token) const {
    const std::size_t first =
        layer * layer_bytes() + std::size_t{head} * block_tokens * key_row_bytes();
    return first + (key_order == KeyOrder::kRows ? token * key_row_bytes()
                                                 : 2 * token * element_bytes(element));
  }
  constexpr std::size_t value_offset(std::uint32_t layer, std::uint32_t head,
                                     std::uint32_t token) const {
    if (values_in_keys) return key_offset(layer, head, token);
    const std::uint32_t second = value_order == ValueOrder::kTokenPairs ? token % 2 : 0;
    return layer * layer_bytes() + std::size_t{kv_heads} * block_tokens * key_row_bytes() +
           (std::size_t{head} * block_tokens + token - second) * value_row_bytes() +
           second * element_bytes(element);
  }

  constexpr std::size_t key_scale_offset(std::uint32_t layer, std::uint32_t head,
                                         std::uint32_t token) const {
    return layer * layer_bytes() +
           std::size_t{kv_heads} * block_tokens *
               (key_row_bytes() + (values_in_keys ? 0 : value_row_bytes())) +
           (std::size_t{head} * block_tokens + token) * scale_bytes(element);
  }
  constexpr std::size_t value_scale_offset(std::uint32_t layer, std::uint32_t head,
                                           std::uint32_t token) const {
    return key_scale_offset(layer, values_in_keys ? head : head + kv_heads, token);
  }

  constexpr Row key_row(std::byte* page, std::uint32_t layer, std::uint32_t head,
                        std::uint32_t token) const {
    const std::size_t pair_step = key_order == KeyOrder::kRows ? 2 : 2 * std::size_t{block_tokens};
    return {page + key_offset(layer, head, token), 1, pair_step,
            page + key_scale_offset(layer, head, token)};
  }
  constexpr Row value_row(std::byte* page, std::uint32_t layer, std::uint32_t head,
                          std::uint32_t token) const {
    if (values_in_keys) return key_row(page, layer, head, token);
    const bool paired = value_order == ValueOrder::kTokenPairs && (token | 1u) < block_tokens;
    const std::size_t step = paired ? 2 : 1;
    return {page + value_offset(layer, head, token), step, 2 * step,
            page + value_scale_offset(layer, head, token)};
  }
};

// The KV format as part of a namespace, the same for equal layouts only:
// "f16.rows.t16.l30.h3.k64.v64" is 16 tokens of 30 layers with 3 heads of 64 key and 64 value
// dimensions. Names are kept on disk: they never change their meaning.
std::string format_name(const PageLayout& layout);

// Copies the rows of the first `tokens` tokens of every layer, and no byte of another row: the
// source's next rows may be in the making, the target's stay what they were.
void copy_rows(const PageLayout& layout, const std::byte* from, std::byte* to,
               std::uint32_t tokens);

}  // namespace pagoda::kv::memory
