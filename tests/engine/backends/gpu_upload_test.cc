// What a start puts into device memory is there, stays there, and is the same at every start.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "device/blocked_legacy_stream.h"
#include "device/device_fixture.h"
#include "engine/backends/gpu_engine_fixture.h"
#include "kernels/cuda/digest.h"
#include "kernels/cuda/open_gpu.h"
#include "model/gpu_model.h"
#include "model/upload_log.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 37 + 11);
  return made;
}

TEST(DigestTest, PartsAddUpAndEveryBitCounts) {
  const std::vector<std::byte> bytes = pattern(1029);
  const std::uint64_t whole = cuda::digest(bytes);
  EXPECT_EQ(
      cuda::digest(std::span(bytes).first(512)) + cuda::digest(std::span(bytes).subspan(512), 64),
      whole);
  std::set<std::uint64_t> seen = {whole};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> other = bytes;
    other[i] ^= std::byte{1};
    EXPECT_TRUE(seen.insert(cuda::digest(other)).second) << i;
  }
}

TEST(DigestTest, TheGpuAndTheHostAgree) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  for (const std::size_t bytes : {1, 7, 8, 9, 4096, 1000003}) {
    const std::vector<std::byte> host = pattern(bytes);
    const device::Buffer data = gpu.send(host);
    const device::Buffer sum = gpu.send(std::vector<std::uint64_t>{0});
    cuda::launch_digest(data.data(), bytes, sum.as<std::uint64_t>(), gpu.stream().handle());
    EXPECT_EQ(gpu.fetch<std::uint64_t>(sum, 1).front(), cuda::digest(host)) << bytes;
  }
}

TEST(UploadLogTest, AByteThatChangedOnTheDeviceIsNamed) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  ThreadPool pool(3);
  model::UploadLog log;
  const std::vector<std::byte> host = pattern(3 << 20);
  const device::Buffer first = value_of(device::Buffer::allocate(host.size(), "a test"));
  const device::Buffer second = value_of(device::Buffer::allocate(host.size(), "a test"));
  ASSERT_TRUE(log.upload(gpu.stream(), host, first.data(), "the first", &pool).ok());
  ASSERT_TRUE(log.upload(gpu.stream(), host, second.data(), "the second").ok());
  ASSERT_TRUE(log.check(gpu.stream()).ok());
  const std::byte wrong{0x55};
  ASSERT_TRUE(gpu.stream().copy_to_device(second.data() + 12345, &wrong, 1).ok());
  const Status found = log.check(gpu.stream());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(found.error().message.find("the second (3145728 bytes)"), std::string::npos)
      << found.error().message;
}

TEST(BufferTest, IsZeroedBeforeItIsGivenWhateverTheLegacyStreamDoes) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const std::vector<std::byte> host = pattern(1 << 20);
  BlockedLegacyStream blocked;
  const device::Buffer zeroed = value_of(device::Buffer::allocate(host.size(), "a test"));
  const device::Buffer written = value_of(device::Buffer::allocate(host.size(), "a test"));
  ASSERT_TRUE(gpu.stream().copy_to_device(written.data(), host.data(), host.size()).ok());
  ASSERT_TRUE(gpu.stream().wait().ok());
  EXPECT_EQ(gpu.fetch<std::byte>(zeroed, host.size()), std::vector<std::byte>(host.size()));
  blocked.release();
  EXPECT_EQ(gpu.fetch<std::byte>(written, host.size()), host);
}

engine::Request request_of(const model::Config& config) {
  engine::Request request;
  request.prompt = model::random_tokens(config, 40, 5);
  request.end.max_tokens = 8;
  request.sampling.logprobs = 2;
  return request;
}

// What a start put on the legacy stream would run when the machine is ready, over what is there.
TEST(GpuWeightsTest, AStartPutsNothingOnTheLegacyStream) {
  REQUIRE_GPU();
  const SeededModel model({.heads = 8, .kv_heads = 2, .head_dim = 64});
  const engine::Request request = request_of(model.config());
  for (const bool random : {false, true}) {
    const FixtureOptions options = {.blocks = 256, .random_weights = random};
    GpuEngineFixture plain(model, options);
    const auto expected = plain.submit(request);
    plain.run();
    BlockedLegacyStream blocked;
    GpuEngineFixture gpu(model, options);
    blocked.release();
    const auto heard = gpu.submit(request);
    gpu.run();
    expect_same(*heard, *expected, random ? 1 : 0);
  }
}

// A file's weights and random ones, ten machines each: the same digest and the same answer.
TEST(GpuWeightsTest, TenStartsAreEqual) {
  REQUIRE_GPU();
  const SeededModel model({.layers = 4,
                           .width = 1024,
                           .hidden_width = 2816,
                           .heads = 8,
                           .kv_heads = 2,
                           .head_dim = 128,
                           .vocabulary = 8192});
  const engine::Request request = request_of(model.config());
  for (const bool random : {false, true}) {
    std::shared_ptr<engine::TestSink> first;
    std::set<std::uint64_t> digests;
    for (int start = 0; start < 10; ++start) {
      GpuEngineFixture gpu(model, {.blocks = 256, .random_weights = random});
      const auto heard = gpu.submit(request);
      gpu.run();
      digests.insert(gpu.backend().weights_digest().value());
      if (!first) first = heard;
      expect_same(*heard, *first, static_cast<std::size_t>(start));
    }
    EXPECT_EQ(digests.size(), 1u) << (random ? "random" : "uploaded");
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
