#include "kv/memory/page_layout.h"

#include <cstring>

#include "base/assert.h"
#include "kv/memory/rotation_blocks.h"

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
    case Element::kE5M2:
      return "e5m2";
    case Element::kInt8:
      return "int8";
    case Element::kInt4:
      return "int4";
  }
  ASSERT(false, "every element has a name");
  return "";
}

// One head's values, of fewer tokens than a block: they may end inside a group.
void copy_values(const PageLayout& layout, const std::byte* from, std::byte* to,
                 std::uint32_t tokens) {
  const std::uint32_t run = run_units(layout.elements.values);
  const bool whole_group = tokens / run * run + run <= layout.block_tokens;
  const std::uint32_t rest =
      layout.value_order == ValueOrder::kTokenGroups && whole_group ? tokens % run : 0;
  const std::size_t before = (tokens - rest) * layout.value_row_bytes();
  std::memcpy(to, from, before);
  if (rest == 0) return;
  const std::size_t bytes = unit_bytes(layout.elements.values);
  for (std::size_t at = before; at < before + run * layout.value_row_bytes(); at += run * bytes) {
    std::memcpy(to + at, from + at, rest * bytes);
  }
}

// One head's keys, of fewer tokens than a block.
void copy_keys(const PageLayout& layout, const std::byte* from, std::byte* to,
               std::uint32_t tokens) {
  if (layout.key_order == KeyOrder::kRows) {
    std::memcpy(to, from, tokens * layout.key_row_bytes());
    return;
  }
  const std::size_t run = run_units(layout.elements.keys) * unit_bytes(layout.elements.keys);
  const std::size_t column = layout.block_tokens * run;
  for (std::size_t at = 0; at < layout.block_tokens * layout.key_row_bytes(); at += column) {
    std::memcpy(to + at, from + at, tokens * run);
  }
}

// One head's scales, of fewer tokens than a block: `row_bytes` of a row, group after group.
void copy_scales(const PageLayout& layout, std::size_t row_bytes, const std::byte* from,
                 std::byte* to, std::uint32_t tokens) {
  const std::size_t step = layout.scale_step();
  const std::size_t of_tokens = tokens * step / layout.block_tokens;
  for (std::size_t at = 0; at < layout.block_tokens * row_bytes; at += step) {
    std::memcpy(to + at, from + at, of_tokens);
  }
}

std::string elements_name(const PageLayout& layout) {
  std::string name = name_of(layout.elements.keys);
  if (layout.elements.values != layout.elements.keys) {
    name += std::string("-") + name_of(layout.elements.values);
  }
  if (layout.elements.keys == Element::kInt4 || layout.elements.values == Element::kInt4) {
    name += ".g" + std::to_string(kScaleGroup);
  }
  const RotationBlocks blocks = rotation_blocks(layout);
  if (blocks.keys != 0 || blocks.values != 0) {
    name += ".r" + std::to_string(blocks.keys) + "-" + std::to_string(blocks.values);
  }
  return name;
}

}  // namespace

std::string format_name(const PageLayout& layout) {
  std::string name = elements_name(layout);
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
      const std::size_t key_scales = layout.key_scale_offset(layer, head, 0);
      const std::size_t value_scales = layout.value_scale_offset(layer, head, 0);
      copy_scales(layout, layout.key_scale_bytes(), from + key_scales, to + key_scales, tokens);
      copy_scales(layout, layout.value_scale_bytes(), from + value_scales, to + value_scales,
                  tokens);
    }
  }
}

}  // namespace pagoda::kv::memory
