#include "engine/backends/gpu_budget.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// 16 of 100 GiB are taken.
GpuBudget budget() {
  return {.bytes_all = 100 * kGiB,
          .bytes_free = 84 * kGiB,
          .page_bytes = 2 * kMiB,
          .kv_bytes = {},
          .blocks = {}};
}

std::string error_of(const GpuBudget& asked) {
  const Result<std::uint32_t> counted = count_blocks(asked);
  return counted.ok() ? "fine" : counted.error().message;
}

TEST(GpuBudget, IsWhatTheShareOfMemoryLeaves) {
  GpuBudget asked = budget();
  asked.memory_utilization = 0.5;
  EXPECT_EQ(count_blocks(asked).value(), 34 * kGiB / (2 * kMiB));
}

TEST(GpuBudget, FlagsThatAreNearerToTheCacheDecide) {
  GpuBudget asked = budget();
  asked.kv_bytes = 3 * kGiB + kMiB;
  EXPECT_EQ(count_blocks(asked).value(), 1536u);
  asked.blocks = 7;
  EXPECT_EQ(count_blocks(asked).value(), 7u);
}

TEST(GpuBudget, ErrorsNameTheFlagWhatItAsksForAndWhatThereIs) {
  GpuBudget asked = budget();
  asked.memory_utilization = 0.1;
  EXPECT_EQ(error_of(asked),
            "`gpu_memory_utilization`: 0.1 of the GPU's 100.00 GiB are 10.00 GiB, of which weights "
            "and workspace take 16.00 GiB: no block of 2.00 MiB is left");
  asked.kv_bytes = 85 * kGiB;
  EXPECT_EQ(error_of(asked),
            "`kv_cache_memory_bytes`: is 85.00 GiB, but beside weights and workspace 84.00 GiB of "
            "the GPU's 100.00 GiB are free");
  asked.kv_bytes = kMiB;
  EXPECT_EQ(error_of(asked), "`kv_cache_memory_bytes`: 1.00 MiB hold no block, one takes 2.00 MiB");
  asked.blocks = 50000;
  EXPECT_EQ(error_of(asked),
            "`num_gpu_blocks_override`: 50000 blocks take 97.66 GiB, but beside weights and "
            "workspace 84.00 GiB of the GPU's 100.00 GiB are free");
}

}  // namespace
}  // namespace pagoda::engine
