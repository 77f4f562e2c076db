#include "kv/memory/page_layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "base/byte_size.h"
#include "base/half.h"
#include "base/random.h"
#include "kv/memory/codec.h"
#include "kv/memory/page_buffer.h"
#include "kv/memory/rotation_blocks.h"
#include "kv/memory/view.h"

namespace pagoda::kv::memory {
namespace {

using Bytes = std::vector<std::byte>;

constexpr PageLayout kLayout = {.elements = Element::kF16,
                                .block_tokens = 5,
                                .layers = 3,
                                .kv_heads = 2,
                                .key_dim = 7,
                                .value_dim = 4};

constexpr Element kElements[] = {Element::kF32, Element::kF16, Element::kBF16, Element::kE4M3,
                                 Element::kE5M2};
constexpr Elements kIntegers[] = {Element::kInt8,
                                  Element::kInt4,
                                  {Element::kInt8, Element::kInt4},
                                  {Element::kBF16, Element::kInt8},
                                  {Element::kInt4, Element::kF32}};
constexpr ValueOrder kOrders[] = {ValueOrder::kRows, ValueOrder::kTokenGroups};

std::vector<std::uint32_t> one_to_128() {
  std::vector<std::uint32_t> sizes(128);
  std::iota(sizes.begin(), sizes.end(), 1u);
  return sizes;
}

// Every element type and all orders, with odd dimensions, a latent row, unused bytes.
std::vector<PageLayout> all_layouts(const std::vector<std::uint32_t>& block_sizes = one_to_128()) {
  std::vector<PageLayout> layouts;
  for (const Element element : kElements) {
    for (const ValueOrder order : kOrders) {
      for (const std::uint32_t tokens : block_sizes) {
        layouts.push_back({element, tokens, 2, 3, 7, 5, order, KeyOrder::kRows, 0});
        layouts.push_back(
            {element, tokens, 3, 1, 1, 1, order, KeyOrder::kRows, 24 * std::size_t{tokens}});
        layouts.push_back({element, tokens, 2, 1, 9, 7, order, KeyOrder::kRows, 0, true});
        layouts.push_back({element, tokens, 2, 3, 6, 5, order, KeyOrder::kColumns, 0});
        layouts.push_back({element, tokens, 2, 1, 4, 2, order, KeyOrder::kColumns, 8, true});
      }
    }
  }
  for (const Elements elements : kIntegers) {
    for (const ValueOrder order : kOrders) {
      for (const std::uint32_t tokens : block_sizes) {
        layouts.push_back({elements, tokens, 2, 3, 32, 64, order, KeyOrder::kRows, 0});
        layouts.push_back({elements, tokens, 2, 1, 96, 32, order, KeyOrder::kColumns, 8});
        if (elements.keys != elements.values) continue;
        layouts.push_back({elements, tokens, 2, 1, 96, 64, order, KeyOrder::kColumns, 0, true});
      }
    }
  }
  return layouts;
}

// Calls visit(row, element, dim) for all rows of every head, token and layer: a key, and a value
// where it is not in the key; `page` is what rows point to.
template <class Visit>
void for_each_row(const PageLayout& layout, std::byte* page, std::uint32_t tokens, Visit visit) {
  for (std::uint32_t layer = 0; layer < layout.layers; ++layer) {
    for (std::uint32_t head = 0; head < layout.kv_heads; ++head) {
      for (std::uint32_t token = 0; token < tokens; ++token) {
        visit(layout.key_row(page, layer, head, token), layout.elements.keys, layout.key_dim);
        if (layout.values_in_keys) continue;
        visit(layout.value_row(page, layer, head, token), layout.elements.values, layout.value_dim);
      }
    }
  }
}

// How many rows of the first `tokens` tokens each byte of a page belongs to.
std::vector<int> owners(const PageLayout& layout, std::uint32_t tokens) {
  Bytes page(layout.page_bytes());
  std::vector<int> owners(page.size(), 0);
  for_each_row(layout, page.data(), tokens, [&](Row row, Element element, std::uint32_t dim) {
    const std::size_t bytes = unit_bytes(element);
    for (std::size_t i = 0; i < unit_count(element, dim); ++i) {
      const std::ptrdiff_t first = row.data - page.data();
      for (std::size_t b = 0; b < bytes; ++b) {
        ++owners.at(static_cast<std::size_t>(first) + row.offset(i) * bytes + b);
      }
    }
    for (std::size_t group = 0; group < scale_groups(element, dim); ++group) {
      for (std::size_t b = 0; b < scale_bytes(element); ++b) {
        ++owners.at(static_cast<std::size_t>(row.scale - page.data()) + group * row.scale_step + b);
      }
    }
  });
  return owners;
}

TEST(PageLayout, EveryRowHasBytesOfItsOwnAndTogetherTheyFillThePage) {
  for (const PageLayout& layout : all_layouts()) {
    const std::vector<int> count = owners(layout, layout.block_tokens);
    const std::size_t used = count.size() - layout.unused_bytes;
    for (std::size_t i = 0; i < count.size(); ++i) {
      ASSERT_EQ(count[i], i < used ? 1 : 0) << format_name(layout) << " byte " << i;
    }
  }
}

TEST(PageLayout, ALayersRowsStandTogether) {
  for (const PageLayout& layout : all_layouts()) {
    for (std::uint32_t layer = 0; layer < layout.layers; ++layer) {
      ASSERT_EQ(layout.key_offset(layer, 0, 0), layer * layout.layer_bytes());
    }
  }
}

std::vector<float> random_row(std::uint64_t index, std::uint32_t dim) {
  std::vector<float> values(dim);
  for (std::size_t i = 0; i < dim; ++i) {
    values[i] = static_cast<float>(2 * random_unit(3, index, i) - 1);
  }
  return values;
}

std::vector<float> rounded(Element element, std::vector<float> values) {
  for (float& value : values) {
    if (element == Element::kF16) value = float_from_fp16(fp16_from_float(value));
    if (element == Element::kBF16) value = float_from_bf16(bf16_from_float(value));
  }
  if (unit_bytes(element) == 1) {
    std::vector<std::byte> row(values.size());
    std::vector<std::byte> scales(2 * scale_groups(element, values.size()));
    const Row at = {.data = row.data(), .scale = scales.data()};
    encode_row(element, values.data(), values.size(), at);
    decode_row(element, at, values.size(), values.data());
  }
  return values;
}

TEST(PageLayout, RowsComeBackAsTheyWereRounded) {
  for (const PageLayout& layout : all_layouts()) {
    Bytes page(layout.page_bytes(), std::byte{0xFF});
    std::uint64_t rows_written = 0;
    for_each_row(layout, page.data(), layout.block_tokens,
                 [&](Row row, Element element, std::uint32_t dim) {
                   const std::vector<float> values = random_row(rows_written++, dim);
                   encode_row(element, values.data(), dim, row);
                 });
    std::uint64_t rows_read = 0;
    for_each_row(
        layout, page.data(), layout.block_tokens, [&](Row row, Element element, std::uint32_t dim) {
          std::vector<float> values(dim);
          decode_row(element, row, dim, values.data());
          ASSERT_EQ(values, rounded(element, random_row(rows_read++, dim))) << format_name(layout);
        });
  }
}

TEST(PageLayout, PairsOfTokensAreInterleavedElementByElement) {
  // 5 tokens of 3 values a head: (t0 t1) (t2 t3) t4; one K row of 1 value a token comes first.
  constexpr PageLayout kPairs = {.elements = Element::kBF16,
                                 .block_tokens = 5,
                                 .layers = 1,
                                 .kv_heads = 1,
                                 .key_dim = 1,
                                 .value_dim = 3,
                                 .value_order = ValueOrder::kTokenGroups};
  Bytes page(kPairs.page_bytes());
  for (std::uint32_t token = 0; token < 5; ++token) {
    const auto t = static_cast<float>(10 * token);
    const std::vector<float> row = {t + 1, t + 2, t + 3};
    encode_row(Element::kBF16, row.data(), 3, kPairs.value_row(page.data(), 0, 0, token));
  }
  std::vector<float> values(15);
  decode_row(Element::kBF16, {page.data() + 5 * 2}, 15, values.data());
  EXPECT_EQ(values, (std::vector<float>{1, 11, 2, 12, 3, 13, 21, 31, 22, 32, 23, 33, 41, 42, 43}));
}

TEST(PageLayout, ColumnsHoldPairsOfDimensionsOfAllTokens) {
  constexpr PageLayout kColumns = {.elements = Element::kBF16,
                                   .block_tokens = 3,
                                   .layers = 1,
                                   .kv_heads = 1,
                                   .key_dim = 4,
                                   .value_dim = 1,
                                   .key_order = KeyOrder::kColumns};
  Bytes page(kColumns.page_bytes());
  for (std::uint32_t token = 0; token < 3; ++token) {
    const auto t = static_cast<float>(10 * token);
    const std::vector<float> row = {t + 1, t + 2, t + 3, t + 4};
    encode_row(Element::kBF16, row.data(), 4, kColumns.key_row(page.data(), 0, 0, token));
  }
  std::vector<float> keys(12);
  decode_row(Element::kBF16, {page.data()}, 12, keys.data());
  EXPECT_EQ(keys, (std::vector<float>{1, 2, 11, 12, 21, 22, 3, 4, 13, 14, 23, 24}));
}

TEST(PageLayout, BytesPerTokenFollowTheFormula) {
  // SmolLM2-135M: 30 layers, 3 KV heads of 64, keys and values, 2 bytes.
  constexpr PageLayout kSmol = {.elements = Element::kF16,
                                .block_tokens = 16,
                                .layers = 30,
                                .kv_heads = 3,
                                .key_dim = 64,
                                .value_dim = 64};
  EXPECT_EQ(kSmol.bytes_per_token(), 30u * 3 * (64 + 64) * 2);
  EXPECT_EQ(kSmol.page_bytes(), kSmol.bytes_per_token() * 16);
  // DeepSeek-V3: 61 layers, one latent row of 512 and 64 rotated dimensions: 70,272 bytes.
  constexpr PageLayout kLatent = {.elements = Element::kBF16,
                                  .block_tokens = 64,
                                  .layers = 61,
                                  .kv_heads = 1,
                                  .key_dim = 512 + 64,
                                  .value_dim = 512,
                                  .values_in_keys = true};
  EXPECT_EQ(kLatent.bytes_per_token(), 70272u);
}

TEST(PageLayout, IntegersTakeTheseBytes) {
  PageLayout layout = {.elements = Element::kBF16,
                       .block_tokens = 16,
                       .layers = 30,
                       .kv_heads = 3,
                       .key_dim = 64,
                       .value_dim = 64};
  const auto bytes_of_a_head = [&](Elements elements) {
    layout.elements = elements;
    return layout.bytes_per_token() / (30 * 3);
  };
  EXPECT_EQ(bytes_of_a_head(Element::kBF16), 256u);
  EXPECT_EQ(bytes_of_a_head(Element::kInt8), 2u * (64 + 2));
  EXPECT_EQ(bytes_of_a_head(Element::kInt4), 2u * (32 + 2 * 2));
  EXPECT_EQ(bytes_of_a_head({Element::kInt8, Element::kInt4}), 66u + 36);
}

TEST(PageLayout, AValueInAKeyIsItsBeginning) {
  for (const PageLayout& layout : all_layouts({1, 4, 5})) {
    if (!layout.values_in_keys) continue;
    Bytes page(layout.page_bytes(), std::byte{0xFF});
    const std::uint32_t token = layout.block_tokens - 1;
    const std::vector<float> key = random_row(7, layout.key_dim);
    encode_row(layout.elements.keys, key.data(), layout.key_dim,
               layout.key_row(page.data(), 1, 0, token));
    std::vector<float> expected = rounded(layout.elements.keys, key);
    expected.resize(layout.value_dim);
    std::vector<float> value(layout.value_dim);
    decode_row(layout.elements.keys, layout.value_row(page.data(), 1, 0, token), layout.value_dim,
               value.data());
    EXPECT_EQ(value, expected) << format_name(layout);
  }
}

TEST(PageLayout, TheFormatHasANameThatSaysEverything) {
  EXPECT_EQ(format_name(kLayout), "f16.rows.t5.l3.h2.k7.v4");
  PageLayout other = kLayout;
  other.elements = Element::kBF16;
  other.value_order = ValueOrder::kTokenGroups;
  other.unused_bytes = 40;
  EXPECT_EQ(format_name(other), "bf16.pairs.t5.l3.h2.k7.v4.u40");
  other.elements = Element::kF32;
  EXPECT_EQ(format_name(other), "f32.pairs.t5.l3.h2.k7.v4.u40");
  other.key_order = KeyOrder::kColumns;
  other.key_dim = 8;
  EXPECT_EQ(format_name(other), "f32.pairs.columns.t5.l3.h2.k8.v4.u40");
  other.values_in_keys = true;
  EXPECT_EQ(format_name(other), "f32.pairs.columns.t5.l3.h2.k8.v4.latent.u40");
}

// How rows are rotated and how many of their dimensions share a scale is in the name: a page that
// was written in another way is another format.
TEST(PageLayout, TheNameSaysHowIntegersAreKept) {
  PageLayout layout = kLayout;
  layout.key_dim = 128;
  layout.value_dim = 96;
  layout.elements = Element::kInt8;
  EXPECT_EQ(format_name(layout), "int8.r128-32.rows.t5.l3.h2.k128.v96");
  layout.elements = Element::kInt4;
  EXPECT_EQ(format_name(layout), "int4.g32.r128-32.rows.t5.l3.h2.k128.v96");
  layout.elements = {Element::kInt8, Element::kInt4};
  EXPECT_EQ(format_name(layout), "int8-int4.g32.r128-32.rows.t5.l3.h2.k128.v96");
  layout.elements = {Element::kBF16, Element::kInt8};
  EXPECT_EQ(format_name(layout), "bf16-int8.r0-32.rows.t5.l3.h2.k128.v96");
}

TEST(RotationBlocks, ArePowersOfTwoThatDivideARow) {
  struct Case {
    Elements elements;
    std::uint32_t key_dim;
    std::uint32_t value_dim;
    bool latent;
    std::uint32_t keys;
    std::uint32_t values;
  };
  const Case kCases[] = {
      {Element::kBF16, 64, 64, false, 0, 0},
      {Element::kE4M3, 64, 64, false, 0, 0},
      {Element::kInt8, 64, 64, false, 64, 32},
      {Element::kInt4, 256, 256, false, 256, 32},
      {Element::kInt8, 80, 24, false, 16, 8},
      {Element::kInt8, 13, 5, false, 0, 0},
      {{Element::kInt4, Element::kF16}, 96, 96, false, 32, 0},
      // A latent and the value at its beginning are rotated at once.
      {Element::kInt8, 576, 512, true, 64, 64},
      {Element::kInt8, 40, 32, true, 8, 8},
  };
  for (const Case& c : kCases) {
    PageLayout layout = kLayout;
    layout.elements = c.elements;
    layout.key_dim = c.key_dim;
    layout.value_dim = c.value_dim;
    layout.values_in_keys = c.latent;
    EXPECT_EQ(rotation_blocks(layout).keys, c.keys) << format_name(layout);
    EXPECT_EQ(rotation_blocks(layout).values, c.values) << format_name(layout);
  }
}

TEST(PageLayout, DifferentFormatsHaveDifferentNames) {
  std::set<std::string> names;
  for (const PageLayout& layout : all_layouts()) {
    EXPECT_TRUE(names.insert(format_name(layout)).second) << format_name(layout);
  }
}

TEST(CopyRows, CopiesTheFirstRowsAndNoByteOfAnother) {
  for (const PageLayout& layout : all_layouts({1, 2, 3, 4, 7, 16, 17, 64})) {
    Bytes from(layout.page_bytes());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 131 + 7);
    for (std::uint32_t tokens = 0; tokens < layout.block_tokens; ++tokens) {
      Bytes to(from.size());
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = ~from[i];
      copy_rows(layout, from.data(), to.data(), tokens);
      const std::vector<int> copied = owners(layout, tokens);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool is_unused = i >= to.size() - layout.unused_bytes;  // the same in all pages
        ASSERT_EQ(to[i], copied[i] == 1 || is_unused ? from[i] : ~from[i])
            << format_name(layout) << ", " << tokens << " rows, byte " << i;
      }
    }
  }
}

TEST(CopyRows, AWholeBlockIsTheWholePage) {
  for (const PageLayout& layout : all_layouts()) {
    const Bytes from(layout.page_bytes(), std::byte{0x5A});
    Bytes to(from.size());
    copy_rows(layout, from.data(), to.data(), layout.block_tokens);
    ASSERT_EQ(to, from) << format_name(layout);
  }
}

TEST(View, FollowsTheBlockTable) {
  for (const ValueOrder order : kOrders) {
    PageLayout layout = kLayout;
    layout.value_order = order;
    Bytes pages(4 * layout.page_bytes());
    const std::vector<BlockId> table = {BlockId(3), BlockId(1)};
    const SequenceView view = {{pages.data(), layout, 2}, table.data()};
    EXPECT_EQ(view.key_row(1, 0).data,
              pages.data() + 3 * layout.page_bytes() + layout.key_offset(2, 1, 0));
    EXPECT_EQ(view.value_row(0, 7).data,
              pages.data() + layout.page_bytes() + layout.value_offset(2, 0, 2));
    EXPECT_EQ(view.key_row(1, 0).step, 1u);
    EXPECT_EQ(view.value_row(0, 7).step, order == ValueOrder::kRows ? 1u : 2u);
    EXPECT_EQ(view.value_row(0, 9).step, 1u) << "the fifth of five tokens has no partner";
  }
}

TEST(PageBuffer, MarksExactlyThePageItIsToldTo) {
  PageBuffer buffer = std::move(PageBuffer::allocate(kLayout, 3)).value();
  buffer.fill_with_nan(BlockId(1));
  for (std::size_t i = 0; i < kLayout.page_bytes(); ++i) {
    ASSERT_EQ(buffer.page(BlockId(0))[i], std::byte{0});
    ASSERT_EQ(buffer.page(BlockId(1))[i], std::byte{0xFF});
    ASSERT_EQ(buffer.page(BlockId(2))[i], std::byte{0});
  }
}

TEST(PageBuffer, MoreThanTheSystemGivesIsAnErrorWithTheNumber) {
  PageLayout huge = kLayout;
  huge.layers = 1u << 30;
  huge.kv_heads = 1u << 20;
  const auto buffer = PageBuffer::allocate(huge, 1);
  ASSERT_FALSE(buffer.ok());
  const std::string size = format_byte_size(static_cast<double>(huge.page_bytes()));
  EXPECT_NE(buffer.error().message.find(size), std::string::npos) << buffer.error().message;
}

}  // namespace
}  // namespace pagoda::kv::memory
