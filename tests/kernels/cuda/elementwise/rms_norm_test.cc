#include <gtest/gtest.h>

#include <cmath>

#include "base/half.h"
#include "device/device_fixture.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using cuda::Bf16;

TEST(RmsNormTest, EqualsItsReferenceToTheBit) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  for (const std::size_t width : {64, 576, 1000, 4096}) {
    std::vector<float> x(5 * width);
    std::vector<float> weight(width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform(11, i, 3.0f);
    for (std::size_t i = 0; i < width; ++i) weight[i] = uniform(12, i, 1.0f);
    const device::Buffer residual = gpu.send(x);
    const device::Buffer weights = gpu.send(weight);
    const std::vector<std::uint32_t> order = {4, 0, 2};
    const device::Buffer source = gpu.send(order);
    const device::Buffer activations = gpu.poisoned(2 * cuda::activation_values(3, width));
    cuda::launch_rms_norm({.residual = residual.as<float>(),
                           .weight = weights.as<float>(),
                           .source = source.as<std::uint32_t>(),
                           .rows = 3,
                           .width = static_cast<std::uint32_t>(width),
                           .epsilon = 1e-5f,
                           .activations = activations.as<Bf16>()},
                          gpu.stream().handle());
    const auto got = gpu.fetch<Bf16>(activations, cuda::activation_values(3, width));
    std::vector<Bf16> expected(width);
    for (std::size_t r = 0; r < order.size(); ++r) {
      cuda::reference::rms_norm(x.data() + order[r] * width, weight.data(), 1e-5f, width,
                                expected.data());
      for (std::size_t c = 0; c < width; ++c) {
        ASSERT_EQ(got[cuda::activation_index(r, c, 3)], expected[c]);
      }
    }
  }
}

TEST(RmsNormTest, WithoutAWeightRowsAreRoundedAsTheyAre) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  for (const std::size_t width : {72, 5000}) {
    std::vector<float> x(2 * width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform(13, i, 30.0f);
    const device::Buffer residual = gpu.send(x);
    const device::Buffer activations = gpu.poisoned(2 * cuda::activation_values(2, width));
    cuda::launch_rms_norm({.residual = residual.as<float>(),
                           .rows = 2,
                           .width = static_cast<std::uint32_t>(width),
                           .activations = activations.as<Bf16>()},
                          gpu.stream().handle());
    const auto got = gpu.fetch<Bf16>(activations, cuda::activation_values(2, width));
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(got[cuda::activation_index(i / width, i % width, 2)], bf16_from_float(x[i]));
    }
  }
}

// A norm in place, of a part of a row.
TEST(RowNormTest, EqualsItsReferenceToTheBitAndLeavesTheRestAlone) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  for (const std::uint32_t width : {40u, 512u, 3000u}) {
    const std::size_t stride = width + 24;
    std::vector<float> x(4 * stride);
    std::vector<float> weight(width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform(14, i, 3.0f);
    for (std::size_t i = 0; i < width; ++i) weight[i] = uniform(15, i, 1.0f);
    const device::Buffer rows = gpu.send(x);
    const device::Buffer weights = gpu.send(weight);
    cuda::launch_row_norm({.values = rows.as<float>() + 16,
                           .stride = stride,
                           .weight = weights.as<float>(),
                           .rows = 4,
                           .width = width,
                           .epsilon = 1e-6f},
                          gpu.stream().handle());
    for (std::size_t r = 0; r < 4; ++r) {
      cuda::reference::row_norm(x.data() + r * stride + 16, weight.data(), 1e-6f, width);
    }
    ASSERT_EQ(gpu.fetch<float>(rows, x.size()), x) << width;
  }
}

TEST(AddBranchTest, AddsTheNormedAndScaledBranchAndScalesTheSum) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  constexpr std::uint32_t kWidth = 1000;
  constexpr float kScale = 0.3f;
  constexpr float kOutputScale = 1.25f;
  std::vector<float> branch(3 * kWidth);
  std::vector<float> residual(branch.size());
  std::vector<float> weight(kWidth);
  for (std::size_t i = 0; i < branch.size(); ++i) branch[i] = uniform(21, i, 3.0f);
  for (std::size_t i = 0; i < branch.size(); ++i) residual[i] = uniform(22, i, 3.0f);
  for (std::size_t i = 0; i < kWidth; ++i) weight[i] = uniform(23, i, 1.0f);
  const device::Buffer branch_on_gpu = gpu.send(branch);
  const device::Buffer weights = gpu.send(weight);
  for (const bool normed : {false, true}) {
    const device::Buffer sums = gpu.send(residual);
    cuda::launch_add_branch({.branch = branch_on_gpu.as<float>(),
                             .weight = normed ? weights.as<float>() : nullptr,
                             .rows = 3,
                             .width = kWidth,
                             .epsilon = 1e-5f,
                             .scale = kScale,
                             .output_scale = kOutputScale,
                             .residual = sums.as<float>()},
                            gpu.stream().handle());
    std::vector<float> added = branch;
    for (std::size_t r = 0; r < 3 && normed; ++r) {
      cuda::reference::row_norm(added.data() + r * kWidth, weight.data(), 1e-5f, kWidth);
    }
    const auto got = gpu.fetch<float>(sums, residual.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const float scaled = added[i] * kScale;
      const float sum = residual[i] + scaled;
      ASSERT_EQ(got[i], sum * kOutputScale) << (normed ? "normed, " : "") << i;
    }
  }
}

TEST(FinishLogitsTest, ScalesAndCapsWithinTheChipsExponential) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  std::vector<float> logits(5001);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = uniform(24, i, 300.0f);
  logits[17] = 3e38f;
  logits[18] = -3e38f;
  logits[19] = NAN;
  for (const float cap : {0.0f, 30.0f}) {
    const device::Buffer on_gpu = gpu.send(logits);
    cuda::launch_finish_logits(
        {.logits = on_gpu.as<float>(), .count = logits.size() - 1, .scale = 0.5f, .cap = cap},
        gpu.stream().handle());
    const auto got = gpu.fetch<float>(on_gpu, logits.size());
    for (std::size_t i = 0; i + 1 < logits.size(); ++i) {
      const float scaled = logits[i] * 0.5f;
      const float expected = cap > 0 ? cuda::reference::soft_cap(scaled, 1.0f, cap) : scaled;
      if (i == 19) {
        ASSERT_TRUE(std::isnan(got[i]));
      } else {
        ASSERT_NEAR(got[i], expected, cap > 0 ? 2e-5f : 0.0f) << i;
      }
    }
    ASSERT_EQ(got.back(), logits.back());
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
