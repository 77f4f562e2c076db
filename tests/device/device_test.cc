// What is said where the GPU is missing or another: needs none.
#include "device/device.h"

#include <gtest/gtest.h>

#include "skip_reasons.h"

namespace pagoda::gpu_test {
namespace {

TEST(Device, AMissingGpuIsAnErrorThatSaysWhatIsMissing) {
  const Result<device::DeviceProperties> opened = device::open_gpu();
  if (opened.ok()) GTEST_SKIP() << kNeedsNoGpu << ": there is one, " << opened.value().name;
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  const std::string& message = opened.error().message;
  EXPECT_TRUE(message == "no usable NVIDIA GPU: none found" ||
              message ==
                  "no usable NVIDIA GPU: CUDA driver version is insufficient for CUDA "
                  "runtime version" ||
              message == "no usable NVIDIA GPU: no CUDA-capable device is detected")
      << message;
}

TEST(Device, AnotherArchitectureIsNamedWithBothNumbers) {
  EXPECT_TRUE(device::check_capability("NVIDIA H200", 9, 0).ok());
  const Status older = device::check_capability("NVIDIA A100", 8, 0);
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(older.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(older.error().message,
            "the GPU 'NVIDIA A100' has compute capability 8.0, but this program's kernels are for "
            "9.0 (H100, H200)");
  EXPECT_FALSE(device::check_capability("NVIDIA B200", 10, 0).ok());
}

}  // namespace
}  // namespace pagoda::gpu_test
