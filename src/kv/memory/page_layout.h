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
//            [token / 2][value_dim][2]   token groups: tokens 2i and 2i + 1 element by element, the
//                                        right-hand side of a product with weights; tokens at the
//                                        end of a block that make no whole group are rows
//
// Keys and values have elements of their own. Integers are multiplied four at a time: where floats
// stand in pairs (of dimensions, of tokens), bytes of integers stand in fours. A byte holds two
// elements of kInt4, both of one token: dimension 32 i + j in its low half and 32 i + j + 16 in its
// high half (j from 0 to 15). So no byte is written by two tokens, which threads may write at once.
//
// Codes are numbers once they are multiplied by a scale, an fp16 (codec.h): that of their row, or
// of a group of kScaleGroup dimensions of it.
//
//   layer = K, V, then scales of K head 0 [group][token], K head 1 …, V head 0 …
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

enum class Element : std::uint8_t { kF32, kF16, kBF16, kE4M3, kE5M2, kInt8, kInt4 };
enum class KeyOrder : std::uint8_t { kRows, kColumns };
enum class ValueOrder : std::uint8_t { kRows, kTokenGroups };

// The elements in which keys and values are stored, which may differ.
struct Elements {
  constexpr Elements(Element both) : keys(both), values(both) {}  // NOLINT: an element is a pair
  constexpr Elements(Element of_keys, Element of_values) : keys(of_keys), values(of_values) {}

  auto operator<=>(const Elements&) const = default;

  Element keys;
  Element values;
};

constexpr bool is_integer(Element element) {
  return element == Element::kInt8 || element == Element::kInt4;
}

// A *unit* is what a row has places for: an element, or the byte of two kInt4.
constexpr std::size_t unit_bytes(Element element) {
  switch (element) {
    case Element::kF32:
      return 4;
    case Element::kF16:
    case Element::kBF16:
      return 2;
    default:
      return 1;
  }
}
constexpr std::size_t unit_count(Element element, std::size_t dimensions) {
  return element == Element::kInt4 ? dimensions / 2 : dimensions;
}
// Units that stand together in columns of keys, and tokens in a group of values.
constexpr std::uint32_t run_units(Element element) { return is_integer(element) ? 4 : 2; }
// Bytes of one scale; 0 where rows have none.
constexpr std::size_t scale_bytes(Element element) {
  return is_integer(element) || element == Element::kE4M3 ? 2 : 0;
}
// Dimensions that share a scale in rows of kInt4; other rows have one scale, or none.
inline constexpr std::uint32_t kScaleGroup = 32;
constexpr std::size_t scale_groups(Element element, std::size_t dimensions) {
  return element == Element::kInt4 ? (dimensions + kScaleGroup - 1) / kScaleGroup : 1;
}
constexpr std::size_t row_bytes(Element element, std::size_t dimensions) {
  return unit_count(element, dimensions) * unit_bytes(element);
}
// Dimensions of a row are a multiple of this.
constexpr std::uint32_t dimension_multiple(Element element) {
  return element == Element::kInt4 ? 32 : 1;
}

// One token's row of one head: unit i stands i / run * run_step + i % run * step units after the
// first.
struct Row {
  std::byte* data = nullptr;
  std::size_t step = 1;
  std::size_t run = 2;
  std::size_t run_step = run * step;
  std::byte* scale = nullptr;  // of its first group, where its element has scales
  std::size_t scale_step = 2;  // bytes from group to group

  constexpr bool contiguous() const { return step == 1 && run_step == run; }
  constexpr std::size_t offset(std::size_t i) const { return i / run * run_step + i % run * step; }
};

struct PageLayout {
  Elements elements = Element::kF16;
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

  constexpr std::size_t key_row_bytes() const { return row_bytes(elements.keys, key_dim); }
  constexpr std::size_t value_row_bytes() const {
    return values_in_keys ? 0 : row_bytes(elements.values, value_dim);
  }
  // Bytes of all scales of a row.
  constexpr std::size_t key_scale_bytes() const {
    return scale_groups(elements.keys, key_dim) * scale_bytes(elements.keys);
  }
  constexpr std::size_t value_scale_bytes() const {
    return values_in_keys ? 0
                          : scale_groups(elements.values, value_dim) * scale_bytes(elements.values);
  }
  constexpr std::size_t layer_bytes() const {
    const std::size_t scales = key_scale_bytes() + value_scale_bytes();
    return std::size_t{kv_heads} * block_tokens * (key_row_bytes() + value_row_bytes() + scales);
  }
  constexpr std::size_t page_bytes() const { return layers * layer_bytes() + unused_bytes; }
  constexpr std::size_t bytes_per_token() const { return page_bytes() / block_tokens; }

  // Offsets within a page of the first unit of `token`'s row (0 to block_tokens - 1).
  constexpr std::size_t key_offset(std::uint32_t layer, std::uint32_t head,
                                   std::uint32_t token) const {
    const std::size_t first =
        layer * layer_bytes() + std::size_t{head} * block_tokens * key_row_bytes();
    return first + token * (key_order == KeyOrder::kRows
                                ? key_row_bytes()
                                : run_units(elements.keys) * unit_bytes(elements.keys));
  }
  constexpr std::size_t value_offset(std::uint32_t layer, std::uint32_t head,
                                     std::uint32_t token) const {
    if (values_in_keys) return key_offset(layer, head, token);
    const std::uint32_t place = is_grouped(token) ? token % run_units(elements.values) : 0;
    return layer * layer_bytes() + std::size_t{kv_heads} * block_tokens * key_row_bytes() +
           (std::size_t{head} * block_tokens + token - place) * value_row_bytes() +
           place * unit_bytes(elements.values);
  }

  // Offsets within a page of the scale of a row's first group; the next group's stands scale_step()
  // bytes further.
  constexpr std::size_t key_scale_offset(std::uint32_t layer, std::uint32_t head,
                                         std::uint32_t token) const {
    return first_scale(layer) + std::size_t{head} * block_tokens * key_scale_bytes() +
           token * scale_bytes(elements.keys);
  }
  constexpr std::size_t value_scale_offset(std::uint32_t layer, std::uint32_t head,
                                           std::uint32_t token) const {
    if (values_in_keys) return key_scale_offset(layer, head, token);
    return first_scale(layer) + std::size_t{kv_heads} * block_tokens * key_scale_bytes() +
           std::size_t{head} * block_tokens * value_scale_bytes() +
           token * scale_bytes(elements.values);
  }
  constexpr std::size_t scale_step() const { return std::size_t{2} * block_tokens; }

  constexpr Row key_row(std::byte* page, std::uint32_t layer, std::uint32_t head,
                        std::uint32_t token) const {
    const std::size_t run = run_units(elements.keys);
    const std::size_t run_step = key_order == KeyOrder::kRows ? run : run * block_tokens;
    return {page + key_offset(layer, head, token),       1,           run, run_step,
            page + key_scale_offset(layer, head, token), scale_step()};
  }
  constexpr Row value_row(std::byte* page, std::uint32_t layer, std::uint32_t head,
                          std::uint32_t token) const {
    if (values_in_keys) return key_row(page, layer, head, token);
    const std::size_t run = run_units(elements.values);
    const std::size_t step = is_grouped(token) ? run : 1;
    return {page + value_offset(layer, head, token),       step,        run, run * step,
            page + value_scale_offset(layer, head, token), scale_step()};
  }

 private:
  constexpr bool is_grouped(std::uint32_t token) const {
    const std::uint32_t run = run_units(elements.values);
    return value_order == ValueOrder::kTokenGroups && token / run * run + run <= block_tokens;
  }
  constexpr std::size_t first_scale(std::uint32_t layer) const {
    return layer * layer_bytes() +
           std::size_t{kv_heads} * block_tokens * (key_row_bytes() + value_row_bytes());
  }
};

// The KV format as part of a namespace, the same for equal layouts only:
// "f16.rows.t16.l30.h3.k64.v64" is 16 tokens of 30 layers with 3 heads of 64 key and 64 value
// dimensions. "int8-int4…" has keys of one element and values of another, "…g32" a scale for so
// many dimensions of 4-bit rows, and "…r64-32" says by which blocks keys and values are rotated
// (rotation_blocks.h). Names are kept on disk: they never change their meaning.
std::string format_name(const PageLayout& layout);

// Copies the rows of the first `tokens` tokens of every layer, and no byte of another row: the
// source's next rows may be in the making, the target's stay what they were.
void copy_rows(const PageLayout& layout, const std::byte* from, std::byte* to,
               std::uint32_t tokens);

}  // namespace pagoda::kv::memory
