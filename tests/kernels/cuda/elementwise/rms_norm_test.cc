#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pagoda::gpu_test
