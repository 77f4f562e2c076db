#include "kv/memory/page_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "kv/memory/page_buffer.h"
#include "kv/memory/view.h"

namespace pagoda::kv::memory {
namespace {

constexpr PageLayout kLayout = {.element = Element::kF16,
                                .block_tokens = 5,
                                .layers = 3,
                                .kv_heads = 2,
                                .key_dim = 7,
                                .value_dim = 4};

TEST(PageLayout, EveryRowHasBytesOfItsOwnAndTogetherTheyFillThePage) {
  std::vector<int> owners(kLayout.page_bytes(), 0);
  for (std::uint32_t layer = 0; layer < kLayout.layers; ++layer) {
    for (std::uint32_t head = 0; head < kLayout.kv_heads; ++head) {
      for (std::uint32_t token = 0; token < kLayout.block_tokens; ++token) {
        for (std::size_t i = 0; i < kLayout.key_row_bytes(); ++i) {
          ++owners.at(kLayout.key_offset(layer, head, token) + i);
        }
        for (std::size_t i = 0; i < kLayout.value_row_bytes(); ++i) {
          ++owners.at(kLayout.value_offset(layer, head, token) + i);
        }
      }
    }
  }
  for (const int count : owners) ASSERT_EQ(count, 1);
}

TEST(PageLayout, BytesPerTokenFollowTheFormula) {
  // SmolLM2-135M: 30 layers, 3 KV heads of 64, keys and values, 2 bytes.
  constexpr PageLayout kSmol = {.element = Element::kF16,
                                .block_tokens = 16,
                                .layers = 30,
                                .kv_heads = 3,
                                .key_dim = 64,
                                .value_dim = 64};
  EXPECT_EQ(kSmol.bytes_per_token(), 30u * 3 * (64 + 64) * 2);
  EXPECT_EQ(kSmol.page_bytes(), kSmol.bytes_per_token() * 16);
}

TEST(View, FollowsTheBlockTable) {
  std::vector<std::byte> pages(4 * kLayout.page_bytes());
  const std::vector<BlockId> table = {BlockId(3), BlockId(1)};
  const SequenceView view = {{pages.data(), kLayout, 2}, table.data()};
  EXPECT_EQ(view.key_row(1, 0),
            pages.data() + 3 * kLayout.page_bytes() + kLayout.key_offset(2, 1, 0));
  EXPECT_EQ(view.value_row(0, 7),
            pages.data() + kLayout.page_bytes() + kLayout.value_offset(2, 0, 2));
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
  EXPECT_NE(buffer.error().message.find(std::to_string(huge.page_bytes())), std::string::npos);
}

}  // namespace
}  // namespace pagoda::kv::memory
