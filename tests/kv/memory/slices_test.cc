#include "kv/memory/slices.h"

#include <gtest/gtest.h>

namespace pagoda::kv::memory {
namespace {

// One layer of 16-token fp16 blocks.
PageLayout heads(std::uint32_t kv_heads, std::uint32_t dim) {
  return {.layers = 1, .kv_heads = kv_heads, .key_dim = dim, .value_dim = dim};
}
PageLayout latent(std::uint32_t dim) {
  return {.layers = 1, .kv_heads = 1, .key_dim = dim, .value_dim = 0};
}

// Every layer has a place of its own in a slice of its kind, the places of a slice are its layout's
// layers, and all pages have one size.
void expect_sound(const SlicePlan& plan, const std::vector<LayerKind>& layers) {
  ASSERT_EQ(plan.slices.size(), plan.layouts.size());
  ASSERT_EQ(plan.places.size(), layers.size());
  std::vector<std::vector<int>> seen;
  for (const PageLayout& layout : plan.layouts) {
    seen.emplace_back(layout.layers, 0);
    EXPECT_EQ(layout.page_bytes(), plan.layouts.front().page_bytes());
    EXPECT_EQ(layout.unused_bytes % layout.block_tokens, 0u);
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerPlace place = plan.places[layer];
    EXPECT_EQ(plan.slices.at(place.slice), layers[layer].reach);
    PageLayout one = plan.layouts.at(place.slice);
    one.layers = 1;
    one.unused_bytes = 0;
    EXPECT_EQ(one, layers[layer].layout) << "a slice keeps what its layers keep";
    ++seen[place.slice].at(place.layer);
  }
  for (const auto& slice : seen) {
    for (const int layers_here : slice) EXPECT_EQ(layers_here, 1) << "every place is taken once";
  }
}

TEST(Slices, AUniformModelIsOneSlice) {
  const std::vector<LayerKind> layers(30, {{}, heads(3, 64)});
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  ASSERT_EQ(plan.slices.size(), 1u);
  EXPECT_EQ(plan.slices[0].window, 0u);
  EXPECT_EQ(plan.layouts[0].layers, 30u);
  EXPECT_EQ(plan.layouts[0].unused_bytes, 0u);
  for (std::uint32_t layer = 0; layer < 30; ++layer) EXPECT_EQ(plan.places[layer].layer, layer);
}

TEST(Slices, FifteenWindowAndThreeFullLayersAreSixSlicesOfThree) {
  std::vector<LayerKind> layers(18, {{512}, heads(1, 256)});
  for (std::size_t layer = 5; layer < 18; layer += 6) layers[layer].reach.window = 0;
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.slices, (std::vector<LayerReach>{{0}, {512}, {512}, {512}, {512}, {512}}));
  for (const PageLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.layers, 3u);
    EXPECT_EQ(layout.unused_bytes, 0u);
  }
}

TEST(Slices, KindsWithoutACommonDivisorAreCutIntoSingleLayers) {
  const PageLayout one = heads(2, 8);
  const std::vector<LayerKind> layers = {
      {{0}, one}, {{8}, one}, {{8}, one}, {{0}, one}, {{0}, one}};
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.slices.size(), 5u);
  for (const PageLayout& layout : plan.layouts) EXPECT_EQ(layout.layers, 1u);
}

TEST(Slices, LatentLayersReachLikeFullOnes) {
  const std::vector<LayerKind> layers(61, {{}, latent(576)});
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.slices, std::vector<LayerReach>(1));
  EXPECT_EQ(plan.layouts[0].bytes_per_token(), 61u * 576 * 2);
}

TEST(Slices, KindsOfDifferentSizeShareAPageSizeWithNothingUnusedWhereTheyDivide) {
  // 8 latent layers of 1,152 bytes a token are 9,216; 27 window layers of 512 are 13,824. The
  // greatest size that divides both into whole layers is 4,608: 4 latent or 9 window layers.
  std::vector<LayerKind> layers(8, {{}, latent(576)});
  layers.insert(layers.end(), 27, {{1024}, heads(1, 128)});
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.slices, (std::vector<LayerReach>{{0}, {0}, {1024}, {1024}, {1024}}));
  for (const PageLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.bytes_per_token(), 4608u);
    EXPECT_EQ(layout.unused_bytes, 0u);
  }
}

TEST(Slices, WhereSizesDoNotDivideAPageHasUnusedBytesAndATokenCostsLeast) {
  // 5 latent layers of 1,152 bytes a token and 3 full layers of 512: 7,296 bytes are needed. Pages
  // of
  //   1 latent layer    5 + 2 slices of 1,152 =  8,064
  //   2 latent layers   3 + 1 slices of 2,304 =  9,216
  //   3 latent layers   2 + 1 slices of 3,456 = 10,368
  //   3 full layers     5 + 1 slices of 1,536 =  9,216
  // and larger ones cost more.
  std::vector<LayerKind> layers(5, {{}, latent(576)});
  layers.insert(layers.end(), 3, {{}, heads(1, 128)});
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  std::vector<std::uint32_t> counts;
  std::vector<std::size_t> unused;  // bytes a token
  for (const PageLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.bytes_per_token(), 1152u);
    counts.push_back(layout.layers);
    unused.push_back(layout.unused_bytes / layout.block_tokens);
  }
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{2, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(unused, (std::vector<std::size_t>{128, 640, 0, 0, 0, 0, 0}));
}

TEST(Slices, AmongEqualCostsTheLargestPageWins) {
  // 2 latent layers of 1,152 and 3 full ones of 512: 4 pages of 1,152, 3 of 1,536 and 2 of 2,304
  // are all 4,608 bytes a token.
  std::vector<LayerKind> layers(2, {{}, latent(576)});
  layers.insert(layers.end(), 3, {{}, heads(1, 128)});
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  ASSERT_EQ(plan.layouts.size(), 2u);
  EXPECT_EQ(plan.layouts[0].bytes_per_token(), 2304u);
}

TEST(Slices, RowsOfEqualBytesButDifferentShapeDoNotShareASlice) {
  const std::vector<LayerKind> layers = {{{}, latent(256)}, {{}, heads(1, 128)}};
  const SlicePlan plan = plan_slices(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.slices.size(), 2u);
}

}  // namespace
}  // namespace pagoda::kv::memory
