// Routing on a GPU: the experts and weights of kernels::route() to the bit, and rows dealt to the
// slots of their experts.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <set>

#include "device/device_fixture.h"
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using kernels::ChosenExpert;
using kernels::Router;
using kernels::RouterScore;

constexpr std::uint32_t kRows = 37;

struct RouterCase {
  const char* name;
  Router router;
  bool biased = false;
  bool scaled = false;
};
void PrintTo(const RouterCase& c, std::ostream* out) { *out << c.name; }

const RouterCase kRouterCases[] = {
    {"Softmax", {.experts = 60, .chosen = 4}},
    {"SoftmaxNormalised", {.experts = 128, .chosen = 8, .is_normalised = true}},
    {"SoftmaxOfChosen",
     {.experts = 32, .chosen = 4, .score = RouterScore::kSoftmaxOfChosen},
     false,
     true},
    {"OneOfTwo", {.experts = 2, .chosen = 1, .score = RouterScore::kSoftmaxOfChosen}},
    {"All", {.experts = 7, .chosen = 7, .is_normalised = true}},
    {"SigmoidGroups",
     {.experts = 256,
      .chosen = 8,
      .score = RouterScore::kSigmoid,
      .is_normalised = true,
      .weight_scale = 2.5f,
      .groups = 8,
      .groups_chosen = 4},
     true},
    {"SoftmaxGroupsOfTheirBest",
     {.experts = 160,
      .chosen = 6,
      .weight_scale = 16.0f,
      .groups = 8,
      .groups_chosen = 3,
      .group_best = 1}},
    {"Sigmoid", {.experts = 512, .chosen = 32, .score = RouterScore::kSigmoid}, true},
};

class RouteRows : public testing::TestWithParam<RouterCase> {
 protected:
  std::vector<float> random_logits() const {
    const std::uint32_t experts = GetParam().router.experts;
    std::vector<float> logits(kRows * experts);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = uniform(31, i, 6.0f);
    // Rows of ties, of one value, and with what is not a number.
    for (std::uint32_t i = 0; i < experts; ++i) {
      logits[experts + i] = static_cast<float>(i % 3);
      logits[2 * experts + i] = 0.25f;
    }
    logits[3 * experts + experts / 2] = NAN;
    logits[4 * experts] = 1000.0f;
    return logits;
  }
};

TEST_P(RouteRows, GivesTheExpertsAndWeightsOfTheHost) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const Router& router = GetParam().router;
  const std::vector<float> logits = random_logits();
  std::vector<float> bias(router.experts);
  std::vector<float> scales(router.experts);
  for (std::uint32_t i = 0; i < router.experts; ++i) {
    bias[i] = uniform(32, i, 0.5f);
    scales[i] = 1 + uniform(33, i, 0.5f);
  }
  std::vector<cuda::BatchToken> batch(kRows, {0, cuda::kNotSampled, 1, 0});
  batch[5].position = cuda::kNoPosition;
  const device::Buffer logits_on_gpu = gpu.send(logits);
  const device::Buffer bias_on_gpu = gpu.send(bias);
  const device::Buffer scales_on_gpu = gpu.send(scales);
  const device::Buffer batch_on_gpu = gpu.send(batch);
  const std::size_t pairs = kRows * router.chosen;
  const device::Buffer chosen = gpu.poisoned(pairs * sizeof(ChosenExpert));
  cuda::launch_route_rows({.router = router,
                           .logits = logits_on_gpu.as<float>(),
                           .bias = GetParam().biased ? bias_on_gpu.as<float>() : nullptr,
                           .weight_scales = GetParam().scaled ? scales_on_gpu.as<float>() : nullptr,
                           .batch_tokens = batch_on_gpu.as<cuda::BatchToken>(),
                           .rows = kRows,
                           .chosen = chosen.as<ChosenExpert>()},
                          gpu.stream().handle());
  const auto got = gpu.fetch<ChosenExpert>(chosen, pairs);
  kernels::RoutingScratch scratch(router);
  std::vector<ChosenExpert> expected(router.chosen);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    kernels::route(router, logits.data() + row * router.experts,
                   GetParam().biased ? bias.data() : nullptr, scratch, expected.data());
    for (std::uint32_t i = 0; i < router.chosen; ++i) {
      const ChosenExpert& own = got[row * router.chosen + i];
      if (row == 5) {
        ASSERT_EQ(own.expert, cuda::kNoExpert);
        continue;
      }
      float weight = expected[i].weight;
      if (GetParam().scaled) weight *= scales[expected[i].expert];
      ASSERT_EQ(own.expert, expected[i].expert) << "row " << row << ", choice " << i;
      ASSERT_TRUE(own.weight == weight || (own.weight != own.weight && weight != weight))
          << "row " << row << ", choice " << i << ": " << own.weight << " and " << weight;
    }
  }
}

// A batch of one row is dealt at once.
TEST_P(RouteRows, OneRowHasAGroupForEachOfItsExperts) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const Router& router = GetParam().router;
  const device::Buffer logits = gpu.send(random_logits());
  const std::uint32_t chosen_count = router.chosen;
  const device::Buffer chosen = gpu.poisoned(chosen_count * sizeof(ChosenExpert));
  const device::Buffer groups = gpu.poisoned(chosen_count * sizeof(cuda::GemmGroup));
  const device::Buffer counts = gpu.poisoned(8);
  const device::Buffer slots = gpu.poisoned(chosen_count * 4);
  cuda::launch_route_rows({.router = router,
                           .logits = logits.as<float>(),
                           .rows = 1,
                           .chosen = chosen.as<ChosenExpert>(),
                           .groups = groups.as<cuda::GemmGroup>(),
                           .counts = counts.as<std::uint32_t>(),
                           .slot_of_pair = slots.as<std::uint32_t>()},
                          gpu.stream().handle());
  const auto experts = gpu.fetch<ChosenExpert>(chosen, chosen_count);
  const auto dealt = gpu.fetch<cuda::GemmGroup>(groups, chosen_count);
  const auto slot_of_pair = gpu.fetch<std::uint32_t>(slots, chosen_count);
  EXPECT_EQ(gpu.fetch<std::uint32_t>(counts, 2), (std::vector<std::uint32_t>{chosen_count, 0}));
  for (std::uint32_t i = 0; i < chosen_count; ++i) {
    ASSERT_EQ(dealt[i].matrix, experts[i].expert);
    ASSERT_EQ(dealt[i].first_slot, 8 * i);
    ASSERT_EQ(dealt[i].rows, 1u);
    ASSERT_EQ(slot_of_pair[i], 8 * i);
  }
}

INSTANTIATE_TEST_SUITE_P(Routers, RouteRows, testing::ValuesIn(kRouterCases),
                         [](const auto& tested) { return tested.param.name; });

struct Dealt {
  std::vector<cuda::GemmGroup> groups;
  std::vector<cuda::GemmTile> tiles;
  std::vector<std::uint32_t> group_of_pair;
  std::vector<std::uint32_t> slot_of_pair;
};

Dealt deal(DeviceFixture& gpu, const std::vector<ChosenExpert>& chosen, const Router& router) {
  const std::size_t rows = chosen.size() / router.chosen;
  const device::Buffer chosen_on_gpu = gpu.send(chosen);
  const device::Buffer groups =
      gpu.poisoned(cuda::groups_most(rows, router) * sizeof(cuda::GemmGroup));
  const device::Buffer tiles =
      gpu.poisoned(cuda::tiles_most(rows, router) * sizeof(cuda::GemmTile));
  const device::Buffer counts = gpu.poisoned(8);
  const device::Buffer group_of_pair = gpu.poisoned(chosen.size() * 4);
  const device::Buffer slot_of_pair = gpu.poisoned(chosen.size() * 4);
  cuda::launch_group_rows({.chosen = chosen_on_gpu.as<ChosenExpert>(),
                           .pairs = static_cast<std::uint32_t>(chosen.size()),
                           .experts = router.experts,
                           .groups = groups.as<cuda::GemmGroup>(),
                           .tiles = tiles.as<cuda::GemmTile>(),
                           .counts = counts.as<std::uint32_t>(),
                           .group_of_pair = group_of_pair.as<std::uint32_t>(),
                           .slot_of_pair = slot_of_pair.as<std::uint32_t>()},
                          gpu.stream().handle());
  const auto both = gpu.fetch<std::uint32_t>(counts, 2);
  return {gpu.fetch<cuda::GemmGroup>(groups, both[0]), gpu.fetch<cuda::GemmTile>(tiles, both[1]),
          gpu.fetch<std::uint32_t>(group_of_pair, chosen.size()),
          gpu.fetch<std::uint32_t>(slot_of_pair, chosen.size())};
}

TEST(GroupRows, EveryPairHasASlotOfItsExpertAndNoOtherPairHasIt) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const Router router = {.experts = 130, .chosen = 4};
  for (const std::uint32_t rows : {1u, 8u, 33u, 700u}) {
    std::vector<ChosenExpert> chosen(rows * router.chosen);
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t i = 0; i < router.chosen; ++i) {
        // Few experts have most of the rows.
        const auto random = static_cast<std::uint32_t>(random_bits(9, row, i) % 97);
        const std::uint32_t expert = i == 0 ? row % 3 : 3 + random + i * 10 % 29;
        chosen[row * router.chosen + i] = {row == 2 ? cuda::kNoExpert : expert % 130, 1.0f};
      }
    }
    const Dealt dealt = deal(gpu, chosen, router);
    std::vector<std::uint32_t> counts(router.experts);
    std::set<std::uint32_t> slots;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i].expert == cuda::kNoExpert) {
        ASSERT_EQ(dealt.group_of_pair[i], cuda::kNoExpert);
        continue;
      }
      ++counts[chosen[i].expert];
      ASSERT_LT(dealt.group_of_pair[i], dealt.groups.size());
      const cuda::GemmGroup& group = dealt.groups[dealt.group_of_pair[i]];
      ASSERT_EQ(group.matrix, chosen[i].expert);
      ASSERT_GE(dealt.slot_of_pair[i], group.first_slot);
      ASSERT_LT(dealt.slot_of_pair[i], group.first_slot + group.rows);
      ASSERT_TRUE(slots.insert(dealt.slot_of_pair[i]).second) << "two pairs in one slot";
    }
    std::uint32_t next = 0;
    std::size_t tiles = 0;
    for (std::size_t g = 0; g < dealt.groups.size(); ++g) {
      const cuda::GemmGroup& group = dealt.groups[g];
      ASSERT_EQ(group.first_slot, next);
      ASSERT_EQ(group.rows, counts[group.matrix]);
      next += (group.rows + 7) / 8 * 8;
      if (group.rows <= cuda::kSmallRows) continue;
      for (std::uint32_t t = 0; t * cuda::kLargeRows < group.rows; ++t, ++tiles) {
        ASSERT_LT(tiles, dealt.tiles.size());
        ASSERT_EQ(dealt.tiles[tiles].group, g);
        ASSERT_EQ(dealt.tiles[tiles].batch_tile, t);
      }
    }
    ASSERT_EQ(tiles, dealt.tiles.size());
    ASSERT_LE(next, cuda::slots_most(rows, router));
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
