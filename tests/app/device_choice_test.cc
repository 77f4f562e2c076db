// Where a model runs, on a machine that has no GPU.
#include "app/device_choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/toy_model.h"
#include "kernels/select.h"
#include "skip_reasons.h"

namespace pagoda::app {
namespace {

class DeviceChoice : public testing::Test {
 protected:
  void SetUp() override {
    const Result<std::string> found = engine::find_gpu();
    if (found.ok()) GTEST_SKIP() << kNeedsNoGpu << ": there is one, " << found.value();
    missing_ = found.error().message;
    sizes_.kv_bytes = 1 << 20;
    sizes_.threads = 1;
  }
  Result<std::unique_ptr<engine::Backend>> create(DeviceKind kind) const {
    return create_backend({.kind = kind, .gpu_blocks = {}}, model_.config(), model_.weights(),
                          kernels::ref_set(), sizes_);
  }

  const bench::ToyModel model_{256};
  engine::BackendOptions sizes_;
  std::string missing_;
};

TEST_F(DeviceChoice, CudaIsAnErrorThatSaysWhatIsMissing) {
  const auto backend = create(DeviceKind::kCuda);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().message,
            shows_nvidia_gpu()
                ? missing_
                : "`device=cuda`: there is no NVIDIA driver on this machine (" + missing_ + ")");
  EXPECT_TRUE(missing_ ==
                  "this program was built without CUDA: it runs on the CPU. With nvcc on "
                  "PATH, \"make clean pagoda\" builds it with CUDA" ||
              missing_.starts_with("no usable NVIDIA GPU: "))
      << missing_;
}

TEST_F(DeviceChoice, AutoFallsBackToTheCpu) {
  for (const DeviceKind kind : {DeviceKind::kAuto, DeviceKind::kCpu}) {
    const auto backend = create(kind);
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    EXPECT_EQ(backend.value()->device_name(), "1 thread");
    EXPECT_EQ(backend.value()->kernel_set(), "ref");
    const auto copier = backend.value()->create_page_copier();
    EXPECT_TRUE(copier.ok() && copier.value() == nullptr);
  }
}

TEST_F(DeviceChoice, NothingIsSaidOfAGpuWhereTheMachineHasNone) {
  if (shows_nvidia_gpu()) GTEST_SKIP() << kNeedsNoGpu << ": there is one, " << missing_;
  testing::internal::CaptureStderr();
  const auto backend = create(DeviceKind::kAuto);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(backend.ok());
}

// A share of a GPU's memory is not passed over in silence, and blocks bound the cache here, too.
TEST_F(DeviceChoice, WhatBoundsAGpusCacheBoundsThatOfACpuOrSaysThatItDoesNot) {
  const auto blocks_of = [&](const DeviceOptions& device) {
    const auto backend =
        create_backend(device, model_.config(), model_.weights(), kernels::ref_set(), sizes_);
    return backend.value()->kv_bytes() / backend.value()->page_layout().page_bytes();
  };
  testing::internal::CaptureStderr();
  const std::uint64_t plain = blocks_of({.kind = DeviceKind::kCpu, .gpu_blocks = {}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(plain, 48u);
  EXPECT_EQ(blocks_of({.kind = DeviceKind::kCpu, .gpu_blocks = 48}), 48u);
  testing::internal::CaptureStderr();
  EXPECT_EQ(blocks_of({.kind = DeviceKind::kAuto, .gpu_memory_utilization = 0.5}), plain);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: `gpu_memory_utilization` bounds nothing on a CPU: `num_gpu_blocks_override` "
            "or, of a server, `kv_cache_memory_bytes` bounds its KV cache\n");
}

TEST_F(DeviceChoice, StepsAreChosenForTheDeviceWhereTheyAreLeftToIt) {
  const auto steps_of = [&](std::optional<StepFlags> flags) {
    const DeviceOptions device = {.kind = DeviceKind::kAuto, .steps = flags};
    const auto backend =
        create_backend(device, model_.config(), model_.weights(), kernels::ref_set(), sizes_);
    return backend.value()->core_options().scheduler;
  };
  sizes_.scheduler.sequences_max = 3;
  sizes_.scheduler.batched_tokens_max = 17;
  EXPECT_EQ(steps_of({}).batched_tokens_max, 17u) << "who says nothing of steps keeps its own";
  const auto chosen = steps_of(StepFlags{});
  EXPECT_EQ(chosen.sequences_max, 64u);
  EXPECT_EQ(chosen.batched_tokens_max, 512u);
  EXPECT_EQ(chosen.shared_step_tokens, 32u);
  EXPECT_EQ(chosen.itl_target_s, 0);
  const auto asked = steps_of(StepFlags{.batched_tokens_max = 20, .itl_target_ms = 30});
  EXPECT_EQ(asked.sequences_max, 10u);
  EXPECT_EQ(asked.batched_tokens_max, 20u);
  EXPECT_DOUBLE_EQ(asked.itl_target_s, 0.03);
}

TEST(NvidiaGpu, IsShownByItsDeviceOrItsDriver) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / ("nvidia_gpu_" + std::to_string(getpid()));
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "proc/driver");
  std::filesystem::create_directories(root / "dev");
  EXPECT_FALSE(shows_nvidia_gpu(root));
  std::ofstream(root / "dev/nvidia0") << "";
  EXPECT_TRUE(shows_nvidia_gpu(root));
  std::filesystem::remove(root / "dev/nvidia0");
  std::filesystem::create_directories(root / "proc/driver/nvidia");
  EXPECT_TRUE(shows_nvidia_gpu(root));
  std::filesystem::remove_all(root);
}

TEST_F(DeviceChoice, RandomWeightsNeedAGpu) {
  const auto on_cpu = create_random_backend({.kind = DeviceKind::kCpu, .gpu_blocks = {}},
                                            model_.config(), {}, kernels::ref_set(), sizes_);
  ASSERT_FALSE(on_cpu.ok());
  EXPECT_EQ(on_cpu.error().message,
            "`random_weights`: weights are made on a GPU; for the CPU bench/make_random_model.py "
            "writes a file of them");
  const auto by_choice = create_random_backend({}, model_.config(), {}, kernels::ref_set(), sizes_);
  ASSERT_FALSE(by_choice.ok());
  EXPECT_EQ(by_choice.error().message, "`random_weights`: " + missing_);
}

}  // namespace
}  // namespace pagoda::app
