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

TEST(GpuBudget, ADraftModelsCacheHasItsShareOfTheSameBytes) {
  GpuBudget asked = budget();
  asked.kv_bytes = 3 * kGiB;
  asked.share = 0.75;
  EXPECT_EQ(count_blocks(asked).value(), 1152u);
  asked.kv_bytes = 2 * kMiB;
  EXPECT_NE(error_of(asked).find("draft model"), std::string::npos) << error_of(asked);
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

TEST(GpuBudget, WeightsThatDoNotFitAreRefusedWithTheirBytes) {
  const auto refusal = [](const GpuWeightsBudget& weights) {
    const Status fits = check_weights_fit(weights);
    return fits.ok() ? "fine" : fits.error().message;
  };
  EXPECT_EQ(refusal({.packed = 80 * kGiB, .in_file = 80 * kGiB, .bytes_free = 80 * kGiB}), "fine");
  EXPECT_EQ(refusal({.packed = 81 * kGiB, .in_file = 80 * kGiB, .bytes_free = 80 * kGiB}),
            "the model's weights take 81.00 GiB on the GPU, of which 80.00 GiB are free: use "
            "`device=cpu`");
  EXPECT_EQ(refusal({.packed = 93 * kGiB, .in_file = 33 * kGiB, .bytes_free = 79 * kGiB}),
            "the model's weights take 93.00 GiB on the GPU (33.00 GiB in the file: types that the "
            "GPU does not multiply by are kept there as bf16), of which 79.00 GiB are free: use "
            "`device=cpu`");
}

}  // namespace
}  // namespace pagoda::engine
