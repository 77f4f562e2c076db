#include "kv/memory/cache_groups.h"

#include <gtest/gtest.h>

#include "kv/memory/blocks_held.h"

namespace pagoda::kv::memory {
namespace {

// One layer of 16-token fp16 blocks.
PageLayout heads(std::uint32_t kv_heads, std::uint32_t dim) {
  return {.layers = 1, .kv_heads = kv_heads, .key_dim = dim, .value_dim = dim};
}
PageLayout latent(std::uint32_t dim) {
  return {.layers = 1, .kv_heads = 1, .key_dim = dim, .value_dim = dim / 2, .values_in_keys = true};
}

// Every layer has a place of its own in a group of its kind, the places of a group are its layout's
// layers, and all pages have one size.
void expect_sound(const CacheGroupPlan& plan, const std::vector<LayerKind>& layers) {
  ASSERT_EQ(plan.groups.size(), plan.layouts.size());
  ASSERT_EQ(plan.locations.size(), layers.size());
  std::vector<std::vector<int>> seen;
  for (const PageLayout& layout : plan.layouts) {
    seen.emplace_back(layout.layers, 0);
    EXPECT_EQ(layout.page_bytes(), plan.layouts.front().page_bytes());
    EXPECT_EQ(layout.unused_bytes % layout.block_tokens, 0u);
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerLocation place = plan.locations[layer];
    EXPECT_EQ(plan.groups.at(place.group), layers[layer].attention);
    PageLayout one = plan.layouts.at(place.group);
    one.layers = 1;
    one.unused_bytes = 0;
    EXPECT_EQ(one, layers[layer].layout) << "a group keeps what its layers keep";
    ++seen[place.group].at(place.layer);
  }
  for (const auto& group : seen) {
    for (const int layers_here : group) EXPECT_EQ(layers_here, 1) << "every place is taken once";
  }
}

TEST(CacheGroups, AUniformModelIsOneGroup) {
  const std::vector<LayerKind> layers(30, {{}, heads(3, 64)});
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].window, 0u);
  EXPECT_EQ(plan.layouts[0].layers, 30u);
  EXPECT_EQ(plan.layouts[0].unused_bytes, 0u);
  for (std::uint32_t layer = 0; layer < 30; ++layer) EXPECT_EQ(plan.locations[layer].layer, layer);
}

TEST(CacheGroups, FifteenWindowAndThreeFullLayersAreSixGroupsOfThree) {
  std::vector<LayerKind> layers(18, {{512}, heads(1, 256)});
  for (std::size_t layer = 5; layer < 18; layer += 6) layers[layer].attention.window = 0;
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.groups, (std::vector<AttentionSpec>{{0}, {512}, {512}, {512}, {512}, {512}}));
  for (const PageLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.layers, 3u);
    EXPECT_EQ(layout.unused_bytes, 0u);
  }
}

TEST(CacheGroups, KindsWithoutACommonDivisorAreCutIntoSingleLayers) {
  const PageLayout one = heads(2, 8);
  const std::vector<LayerKind> layers = {
      {{0}, one}, {{8}, one}, {{8}, one}, {{0}, one}, {{0}, one}};
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.groups.size(), 5u);
  for (const PageLayout& layout : plan.layouts) EXPECT_EQ(layout.layers, 1u);
}

TEST(CacheGroups, LatentLayersKeepWhatFullOnesDo) {
  const std::vector<LayerKind> layers(61, {{}, latent(576)});
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.groups, std::vector<AttentionSpec>(1));
  EXPECT_EQ(plan.layouts[0].bytes_per_token(), 61u * 576 * 2);
}

TEST(CacheGroups, KindsOfDifferentSizeShareAPageSizeWithNothingUnusedWhereTheyDivide) {
  // 8 latent layers of 1,152 bytes a token are 9,216; 27 window layers of 512 are 13,824. The
  // greatest size that divides both into whole layers is 4,608: 4 latent or 9 window layers.
  std::vector<LayerKind> layers(8, {{}, latent(576)});
  layers.insert(layers.end(), 27, {{1024}, heads(1, 128)});
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.groups, (std::vector<AttentionSpec>{{0}, {0}, {1024}, {1024}, {1024}}));
  for (const PageLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.bytes_per_token(), 4608u);
    EXPECT_EQ(layout.unused_bytes, 0u);
  }
}

TEST(CacheGroups, WhereSizesDoNotDivideAPageHasUnusedBytesAndATokenCostsLeast) {
  // 5 latent layers of 1,152 bytes a token and 3 full layers of 512: 7,296 bytes are needed. Pages
  // of
  //   1 latent layer    5 + 2 groups of 1,152 =  8,064
  //   2 latent layers   3 + 1 groups of 2,304 =  9,216
  //   3 latent layers   2 + 1 groups of 3,456 = 10,368
  //   3 full layers     5 + 1 groups of 1,536 =  9,216
  // and larger ones cost more.
  std::vector<LayerKind> layers(5, {{}, latent(576)});
  layers.insert(layers.end(), 3, {{}, heads(1, 128)});
  const CacheGroupPlan plan = plan_cache_groups(layers);
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

TEST(CacheGroups, AmongEqualCostsTheLargestPageWins) {
  // 2 latent layers of 1,152 and 3 full ones of 512: 4 pages of 1,152, 3 of 1,536 and 2 of 2,304
  // are all 4,608 bytes a token.
  std::vector<LayerKind> layers(2, {{}, latent(576)});
  layers.insert(layers.end(), 3, {{}, heads(1, 128)});
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  ASSERT_EQ(plan.layouts.size(), 2u);
  EXPECT_EQ(plan.layouts[0].bytes_per_token(), 2304u);
}

TEST(CacheGroups, RowsOfEqualBytesButDifferentShapeDoNotShareAGroup) {
  const std::vector<LayerKind> layers = {{{}, latent(256)}, {{}, heads(1, 128)}};
  const CacheGroupPlan plan = plan_cache_groups(layers);
  expect_sound(plan, layers);
  EXPECT_EQ(plan.groups.size(), 2u);
}

// Token by token: before token t the group keeps what a query behind t tokens sees, and writes t.
TEST(BlocksHeld, AreTheMostThatASequenceHadWhileItGrew) {
  for (const std::uint32_t block : {1u, 4u, 16u}) {
    for (const AttentionSpec spec :
         {AttentionSpec{0}, {1}, {2}, {4}, {5}, {16}, {17}, {24}, {40}, {5, 3}, {17, 16}}) {
      std::uint64_t most = 0;
      for (std::uint64_t tokens = 1; tokens <= 200; ++tokens) {
        const std::uint64_t end = (tokens + block - 1) / block;
        most = std::max(most, BlocksKept(spec, tokens - 1, block).count(0, end));
        const std::uint64_t bound = blocks_held(spec, tokens, block);
        EXPECT_GE(bound, most) << "window " << spec.window << " block " << block;
        // Sinks that the window still sees are counted twice until it has passed them.
        if (spec.sinks == 0) {
          EXPECT_LE(bound, most + (tokens < spec.window + 2 * block ? 1 : 0))
              << "window " << spec.window << " block " << block << " tokens " << tokens;
        }
      }
    }
  }
}

TEST(PagesToLoad, AreAllBehindTheMatchInAFullGroupAndTheVisibleOnesInAWindow) {
  const std::vector<AttentionSpec> full = {{0}};
  EXPECT_EQ(pages_to_load(full, 4, 0, 16), 4u);
  EXPECT_EQ(pages_to_load(full, 4, 1, 16), 3u);
  EXPECT_EQ(pages_to_load(full, 4, 1, 13), 3u) << "a part of a block takes a page";
  EXPECT_EQ(pages_to_load(full, 4, 4, 16), 0u);
  // The query behind 16 tokens sees the last 5 of them: those of blocks 2 and 3.
  const std::vector<AttentionSpec> both = {{0}, {6}};
  EXPECT_EQ(pages_to_load(both, 4, 0, 16), 4u + 2u);
  EXPECT_EQ(pages_to_load(both, 4, 3, 16), 1u + 1u);
}

}  // namespace
}  // namespace pagoda::kv::memory
