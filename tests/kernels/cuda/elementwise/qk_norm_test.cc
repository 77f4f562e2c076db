#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;

device::Buffer sent(device::Stream& stream, const std::vector<float>& values) {
  auto buffer = device::Buffer::allocate(values.size() * sizeof(float), "a test").value();
  EXPECT_TRUE(stream
                  .copy_to_device(buffer.data(), reinterpret_cast<const std::byte*>(values.data()),
                                  buffer.bytes())
                  .ok());
  return buffer;
}

TEST(QkNormTest, IsTheReferencesToTheBitAndLeavesValuesAlone) {
  REQUIRE_GPU();
  device::Stream stream = device::Stream::create().value();
  for (const std::uint32_t dim : {64u, 128u, 256u}) {
    constexpr std::uint32_t kRows = 5;
    constexpr std::uint32_t kHeads = 6;
    constexpr std::uint32_t kKvHeads = 3;
    std::vector<float> qkv(std::size_t{kRows} * (kHeads + 2 * kKvHeads) * dim);
    for (std::size_t i = 0; i < qkv.size(); ++i) qkv[i] = uniform(7, i, 3.0f);
    std::vector<float> query_weight(dim);
    std::vector<float> key_weight(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      query_weight[i] = 1 + uniform(8, i, 0.5f);
      key_weight[i] = 1 + uniform(9, i, 0.5f);
    }
    const device::Buffer rows = sent(stream, qkv);
    const device::Buffer queries = sent(stream, query_weight);
    const device::Buffer keys = sent(stream, key_weight);
    cuda::launch_qk_norm({.qkv = rows.as<float>(),
                          .query_weight = queries.as<float>(),
                          .key_weight = keys.as<float>(),
                          .rows = kRows,
                          .heads = kHeads,
                          .kv_heads = kKvHeads,
                          .head_dim = dim,
                          .epsilon = 1e-6f},
                         stream.handle());
    ASSERT_TRUE(device::last_launch_error().ok());
    std::vector<float> got(qkv.size());
    ASSERT_TRUE(
        stream.copy_to_host(reinterpret_cast<std::byte*>(got.data()), rows.data(), rows.bytes())
            .ok());
    ASSERT_TRUE(stream.wait().ok());
    for (std::uint32_t head = 0; head < kRows * (kHeads + 2 * kKvHeads); ++head) {
      const std::uint32_t place = head % (kHeads + 2 * kKvHeads);
      if (place >= kHeads + kKvHeads) continue;
      cuda::reference::qk_norm(qkv.data() + std::size_t{head} * dim,
                               place < kHeads ? query_weight.data() : key_weight.data(), 1e-6f,
                               dim);
    }
    EXPECT_EQ(std::memcmp(got.data(), qkv.data(), got.size() * sizeof(float)), 0) << dim;
  }
}

// Of models that norm values and no queries: by a norm without weights.
TEST(QkNormTest, ValuesHaveANormWithoutWeights) {
  REQUIRE_GPU();
  device::Stream stream = device::Stream::create().value();
  constexpr std::uint32_t kRows = 3;
  constexpr std::uint32_t kHeads = 5;
  constexpr std::uint32_t kKvHeads = 2;
  constexpr std::uint32_t kDim = 80;
  std::vector<float> qkv(std::size_t{kRows} * (kHeads + 2 * kKvHeads) * kDim);
  for (std::size_t i = 0; i < qkv.size(); ++i) qkv[i] = uniform(17, i, 3.0f);
  const device::Buffer rows = sent(stream, qkv);
  cuda::launch_qk_norm({.qkv = rows.as<float>(),
                        .normalises_values = true,
                        .rows = kRows,
                        .heads = kHeads,
                        .kv_heads = kKvHeads,
                        .head_dim = kDim,
                        .epsilon = 1e-6f},
                       stream.handle());
  std::vector<float> got(qkv.size());
  ASSERT_TRUE(
      stream.copy_to_host(reinterpret_cast<std::byte*>(got.data()), rows.data(), rows.bytes())
          .ok());
  ASSERT_TRUE(stream.wait().ok());
  const std::vector<float> ones(kDim, 1.0f);
  for (std::uint32_t head = 0; head < kRows * (kHeads + 2 * kKvHeads); ++head) {
    if (head % (kHeads + 2 * kKvHeads) < kHeads + kKvHeads) continue;
    cuda::reference::qk_norm(qkv.data() + std::size_t{head} * kDim, ones.data(), 1e-6f, kDim);
  }
  EXPECT_EQ(std::memcmp(got.data(), qkv.data(), got.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace pagoda::gpu_test
