// How large steps are where no flag says: by device, model and memory, as docs/guide/scheduling.md
// has it. Memory of GPUs is what their drivers tell.
#include "app/step_defaults.h"

#include <gtest/gtest.h>

#include <string>

#include "app/random_model.h"
#include "engine/backends/gpu_budget.h"

namespace pagoda::app {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr StepChoice kCpu = {64, 512, 32, 0};

// A model of the shape of Llama 3 8B in bf16.
StepDevice gpu(std::uint64_t bytes) {
  return {.gpu_bytes = bytes,
          .memory_utilization = 0.92,
          .weights_bytes = 16'060'000'000,
          .row_bytes = 102'400,
          .kv_token_bytes = 131'072};
}

TEST(StepDefaults, OfACpuAreThoseThatKeepStepsShort) { EXPECT_EQ(choose_steps({}, {}), kCpu); }

TEST(StepDefaults, GrowWithTheMemoryOfAGpu) {
  struct Recorded {
    std::string name;
    std::uint64_t mebibytes;
    std::uint32_t sequences;
    std::uint32_t tokens;
  };
  const Recorded recorded[] = {{"H200", 143'167, 256, 8192},      {"H100 80 GB", 81'079, 256, 8192},
                               {"A100 40 GB", 40'339, 128, 4096}, {"L40S", 45'468, 128, 4096},
                               {"RTX 5090", 32'109, 128, 4096},   {"RTX 4090", 24'081, 64, 2048},
                               {"RTX 4080", 16'072, 64, 2048},    {"RTX 4070", 11'939, 32, 1024}};
  for (const Recorded& of : recorded) {
    const StepDevice small_model = {.gpu_bytes = of.mebibytes * kMiB, .memory_utilization = 0.92};
    const StepChoice choice = choose_steps({}, small_model);
    EXPECT_EQ(choice.sequences_max, of.sequences) << of.name;
    EXPECT_EQ(choice.batched_tokens_max, of.tokens) << of.name;
    EXPECT_EQ(choice.shared_step_tokens, of.tokens / 8) << of.name;
    EXPECT_EQ(choice.itl_target_ms, 50) << of.name;
  }
}

TEST(StepDefaults, OfTheModelOfTheTableAreThoseOfTheTable) {
  EXPECT_EQ(choose_steps({}, gpu(143'167 * kMiB)), (StepChoice{256, 8192, 1024, 50}));
}

// 16 GiB of weights leave 5.7 of 21.7 GiB: an eighth of them is workspace for 7,000 tokens, and
// the cache has room for 64 sequences of 512.
TEST(StepDefaults, WorkspaceLeavesRoomForTheCache) {
  EXPECT_EQ(choose_steps({}, gpu(24'081 * kMiB)), (StepChoice{64, 2048, 256, 50}));
  StepDevice full = gpu(24'081 * kMiB);
  full.weights_bytes = 21 * kGiB;  // 0.6 GiB are left: 77 MB, 750 tokens; 1,000 tokens of KV
  EXPECT_EQ(choose_steps({}, full), (StepChoice{16, 512, 64, 50}));
  StepDevice wide = gpu(143'167 * kMiB);
  wide.row_bytes = 4 * kMiB;  // 13.8 GiB hold 3,500 rows
  EXPECT_EQ(choose_steps({}, wide).batched_tokens_max, 2048u);
  StepDevice long_rows = gpu(143'167 * kMiB);
  long_rows.kv_token_bytes = 2 * kMiB;  // 110 GiB are 56,000 tokens: 110 sequences of 512
  EXPECT_EQ(choose_steps({}, long_rows).sequences_max, 64u);
}

TEST(StepDefaults, WeightsThatFillTheMemoryLeaveTheLeast) {
  StepDevice none = gpu(24'081 * kMiB);
  none.weights_bytes = 100 * kGiB;
  EXPECT_EQ(choose_steps({}, none), (StepChoice{16, 512, 64, 50}));
}

TEST(StepDefaults, FlagsWinAndOfOneFlagTheOtherFollows) {
  const StepDevice h200 = gpu(143'167 * kMiB);
  EXPECT_EQ(choose_steps({.sequences_max = 7, .batched_tokens_max = 9}, h200),
            (StepChoice{7, 9, 1, 50}));
  EXPECT_EQ(choose_steps({.sequences_max = 100}, {}), (StepChoice{100, 512, 32, 0}));
  EXPECT_EQ(choose_steps({.sequences_max = 511}, {}), (StepChoice{511, 512, 32, 0}));
  EXPECT_EQ(choose_steps({.sequences_max = 512}, {}), (StepChoice{512, 1024, 32, 0}));
  EXPECT_EQ(choose_steps({.sequences_max = 4096}, h200), (StepChoice{4096, 8192, 1024, 50}));
  EXPECT_EQ(choose_steps({.batched_tokens_max = 65}, {}), (StepChoice{64, 65, 32, 0}));
  EXPECT_EQ(choose_steps({.batched_tokens_max = 64}, {}), (StepChoice{32, 64, 32, 0}));
  EXPECT_EQ(choose_steps({.batched_tokens_max = 2}, h200), (StepChoice{1, 2, 1, 50}));
  EXPECT_EQ(choose_steps({.shared_step_tokens = 5, .itl_target_ms = 0}, h200),
            (StepChoice{256, 8192, 5, 0}));
  EXPECT_EQ(choose_steps({.itl_target_ms = 20}, {}), (StepChoice{64, 512, 32, 20}));
}

TEST(StepDefaults, WhateverIsGivenAStepHasMoreTokensThanSequences) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, kGiB, 16 * kGiB, 140 * kGiB}) {
    for (std::uint32_t given = 1; given <= 4096; given *= 2) {
      const StepChoice by_sequences = choose_steps({.sequences_max = given}, gpu(bytes));
      EXPECT_GT(by_sequences.batched_tokens_max, by_sequences.sequences_max);
      EXPECT_EQ(by_sequences.sequences_max, given);
      const StepChoice by_tokens = choose_steps({.batched_tokens_max = given + 1}, gpu(bytes));
      EXPECT_GT(by_tokens.batched_tokens_max, by_tokens.sequences_max);
      EXPECT_EQ(by_tokens.batched_tokens_max, given + 1);
    }
  }
}

// Bytes of a row of Llama 3 8B: 4 of the residual stream and 2 of its norm (4,096 values), 4 of
// queries, keys and values (6,144), 2 of queries, twice, and of what heads mix (4,096), 2 of gates
// (14,336).
TEST(StepDefaults, WorkspaceIsWhatTheLayersOfAModelTake) {
  const auto model = RandomModel::make({.shape = "llama-3-8b"});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(engine::workspace_row_bytes(model.value()->config()),
            6u * 4096 + 4 * 6144 + 3 * 2 * 4096 + 2 * 14336);
}

TEST(StepDefaults, ConnectionsHaveAQuarterOfTheCoresBesideAGpu) {
  EXPECT_EQ(choose_http_threads(false, 64), 2u);
  EXPECT_EQ(choose_http_threads(true, 2), 2u);
  EXPECT_EQ(choose_http_threads(true, 16), 4u);
  EXPECT_EQ(choose_http_threads(true, 192), 8u);
}

}  // namespace
}  // namespace pagoda::app
