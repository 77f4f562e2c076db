#include "kv/memory/page_layout.h"

#include <cstring>

#include "base/assert.h"

namespace pagoda::kv::memory {
namespace {

const char* name_of(Element element) {
  switch (element) {
    case Element::kF32:
      return "f32";
    case Element::kF16:
      return "f16";
    case Element::kBF16:
      return "bf16";
    case Element::kE4M3:
      return "e4m3";
  }
  ASSERT(false, "every element has a name");
  return "";
}

// The first half of a pair: every other element.
void copy_without_partner(const PageLayout& layout, const std::byte* from, std::byte* to) {
  const std::size_t bytes = element_bytes(layout.element);
  for (std::uint32_t d = 0; d < layout.value_dim; ++d) {
    std::memcpy(to + 2 * d * bytes, from + 2 * d * bytes, bytes);
  }
}

// One head's values, of fewer tokens than a block: an odd count ends inside a pair.
void copy_values(const PageLayout& layout, const std::byte* from, std::byte* to,
                 std::uint32_t tokens) {
  const bool splits_a_pair = layout.value_order == ValueOrder::kTokenPairs && tokens % 2 == 1;
  const std::size_t bytes = (tokens - (splits_a_pair ? 1 : 0)) * layout.value_row_bytes();
  std::memcpy(to, from, bytes);
  if (splits_a_pair) copy_without_partner(layout, from + bytes, to + bytes);
}

// One head's keys, of fewer tokens than a block.
void copy_keys(const PageLayout& layout, const std::byte* from, std::byte* to,
               std::uint32_t tokens) {
  if (layout.key_order == KeyOrder::kRows) {
    std::memcpy(to, from, tokens * layout.key_row_bytes());
    return;
  }
  const std::size_t pair = 2 * element_bytes(layout.element);
  const std::size_t column = layout.block_tokens * pair;
  for (std::uint32_t i = 0; i < layout.key_dim / 2; ++i) {
    std::memcpy(to + i * column, from + i * column, tokens * pair);
  }
}

}  // namespace

std::string format_name(const PageLayout& layout) {
  std::string name = name_of(layout.element);
  name += layout.value_order == ValueOrder::kRows ? ".rows" : ".pairs";
  if (layout.key_order == KeyOrder::kColumns) name += ".columns";
  name += ".t" + std::to_string(layout.block_tokens);
  name += ".l" + std::to_string(layout.layers);
  name += ".h" + std::to_string(layout.kv_heads);
  name += ".k" + std::to_string(layout.key_dim);
  name += ".v" + std::to_string(layout.value_dim);
  if (layout.values_in_keys) name += ".latent";
  if (layout.unused_bytes != 0) name += ".u" + std::to_string(layout.unused_bytes);
  return name;
}

void copy_rows(const PageLayout& layout, const std::byte* from, std::byte* to,
               std::uint32_t tokens) {
  ASSERT(tokens <= layout.block_tokens, "a page has the rows of one block");
  if (tokens == layout.block_tokens) {
    std::memcpy(to, from, layout.page_bytes());
    return;
  }
  const std::size_t used = layout.page_bytes() - layout.unused_bytes;
  std::memcpy(to + used, from + used, layout.unused_bytes);
  for (std::uint32_t layer = 0; layer < layout.layers; ++layer) {
    for (std::uint32_t head = 0; head < layout.kv_heads; ++head) {
      const std::size_t keys = layout.key_offset(layer, head, 0);
      const std::size_t values = layout.value_offset(layer, head, 0);
      copy_keys(layout, from + keys, to + keys, tokens);
      if (!layout.values_in_keys) copy_values(layout, from + values, to + values, tokens);
      const std::size_t scales = tokens * scale_bytes(layout.element);
      for (const std::size_t at :
           {layout.key_scale_offset(layer, head, 0), layout.value_scale_offset(layer, head, 0)}) {
        std::memcpy(to + at, from + at, scales);
      }
    }
  }
}

}  // namespace pagoda::kv::memory
