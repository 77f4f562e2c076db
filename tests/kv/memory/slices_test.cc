#include "kv/memory/slices.h"

#include <gtest/gtest.h>

namespace pagoda::kv::memory {
namespace {

TEST(Slices, AUniformModelIsOneSlice) {
  const std::vector<LayerReach> layers(30);
  const SlicePlan plan = plan_slices(layers);
  EXPECT_EQ(plan.layers_per_slice, 30u);
  ASSERT_EQ(plan.slices.size(), 1u);
  EXPECT_EQ(plan.slices[0].window, 0u);
  for (std::uint32_t layer = 0; layer < 30; ++layer) {
    EXPECT_EQ(plan.places[layer].slice, 0u);
    EXPECT_EQ(plan.places[layer].layer, layer);
  }
}

TEST(Slices, FifteenWindowAndThreeFullLayersAreSixSlicesOfThree) {
  std::vector<LayerReach> layers(18, {512});
  for (std::size_t layer = 5; layer < 18; layer += 6) layers[layer].window = 0;
  const SlicePlan plan = plan_slices(layers);
  EXPECT_EQ(plan.layers_per_slice, 3u);
  ASSERT_EQ(plan.slices.size(), 6u);
  std::vector<std::vector<int>> seen(6, std::vector<int>(3, 0));
  for (std::size_t layer = 0; layer < 18; ++layer) {
    const LayerPlace place = plan.places[layer];
    EXPECT_EQ(plan.slices[place.slice], layers[layer]) << "a slice keeps what its layers keep";
    ++seen[place.slice][place.layer];
  }
  for (const auto& slice : seen) {
    for (const int layers_here : slice) EXPECT_EQ(layers_here, 1) << "every place is taken once";
  }
}

TEST(Slices, KindsWithoutACommonDivisorAreCutIntoSingleLayers) {
  const std::vector<LayerReach> layers = {{0}, {8}, {8}, {0}, {0}};
  const SlicePlan plan = plan_slices(layers);
  EXPECT_EQ(plan.layers_per_slice, 1u);
  EXPECT_EQ(plan.slices.size(), 5u);
}

}  // namespace
}  // namespace pagoda::kv::memory
