#include <gtest/gtest.h>

#include "base/half.h"
#include "device/device_fixture.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/random_matrix.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;

TEST(GpuEmbed, RowsAreTheEmbeddingsOfTheirTokensOrSampledOnes) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const std::uint32_t width = 200;
  std::vector<cuda::Bf16> table(10 * width);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = bf16_from_float(uniform(3, i, 1.0f));
  const std::vector<cuda::BatchToken> batch_tokens = {{7, cuda::kNotSampled, 5, 0},
                                                      {1, 2, 6, 0},
                                                      {4, cuda::kNotSampled, cuda::kNoPosition, 0},
                                                      {4, 1, 7, 0}};
  const std::uint32_t tokens[] = {7, 9, 0, 0};  // nobody's row and a failed choice: token 0
  const device::Buffer table_on_gpu = gpu.send(table);
  const device::Buffer places_on_gpu = gpu.send(batch_tokens);
  const device::Buffer sampled_tokens =
      gpu.send(std::vector<std::uint32_t>{3, cuda::kNotSampled, 9});
  const device::Buffer residual = gpu.poisoned(batch_tokens.size() * width * 4);
  cuda::launch_embed({.table = table_on_gpu.as<cuda::Bf16>(),
                      .batch_tokens = places_on_gpu.as<cuda::BatchToken>(),
                      .sampled_tokens = sampled_tokens.as<std::uint32_t>(),
                      .rows = static_cast<std::uint32_t>(batch_tokens.size()),
                      .width = width,
                      .scale = 1.7f,
                      .residual = residual.as<float>()},
                     gpu.stream().handle());
  const auto got = gpu.fetch<float>(residual, batch_tokens.size() * width);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], float_from_bf16(table[tokens[i / width] * width + i % width]) * 1.7f) << i;
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
