// Keeps the legacy default stream busy: whatever is put on it while this lives runs only
// afterwards. Work on streams of our own must not notice.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace pagoda::gpu_test {

class BlockedLegacyStream {
 public:
  BlockedLegacyStream() {
    EXPECT_EQ(cudaLaunchHostFunc(
                  cudaStreamLegacy,
                  [](void* self) { static_cast<BlockedLegacyStream*>(self)->wait(); }, this),
              cudaSuccess);
  }
  ~BlockedLegacyStream() { release(); }
  BlockedLegacyStream(const BlockedLegacyStream&) = delete;
  BlockedLegacyStream& operator=(const BlockedLegacyStream&) = delete;

  // Everything that was put on it has run when this returns.
  void release() {
    released_ = true;
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
  }

 private:
  // Bounded: a call that waits for the whole device must not stop the test for good.
  void wait() const {
    const auto begun = std::chrono::steady_clock::now();
    while (!released_ && std::chrono::steady_clock::now() - begun < std::chrono::seconds(5)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::atomic<bool> released_ = false;
};

}  // namespace pagoda::gpu_test
