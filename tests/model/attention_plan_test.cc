#include "model/attention_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace pagoda::gpu_test {
namespace {

using kernels::cuda::AttentionItem;

constexpr std::uint32_t kSinkSplits = 1'000'000;  // added to the splits of sinks

// Every visible (query row, split) once, every row finished once, merges in order and over disjoint
// memory.
void expect_plan_covers(std::span<const kernels::cuda::BatchSequence> sequences,
                        const model::AttentionShape& shape, const model::AttentionLimits& limits) {
  model::AttentionPlan plan;
  plan.fill(sequences, shape, limits);
  const std::uint32_t group = shape.heads / shape.kv_heads;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, int> seen;
  std::uint64_t finished = 0;
  const auto rows_of = [&](const AttentionItem& item, std::uint32_t tile_rows) {
    return std::min(tile_rows, sequences[item.sequence].rows * group - item.tile * tile_rows);
  };
  const auto take = [&](const AttentionItem& item, std::uint32_t tile_rows) {
    for (std::uint32_t row = 0; row < rows_of(item, tile_rows); ++row) {
      for (std::uint32_t s = item.first_split; s < item.last_split; ++s) {
        ++seen[{item.sequence, item.tile * tile_rows + row, s + item.sinks * kSinkSplits}];
      }
      // A whole item takes the sinks of its rows by itself.
      if (item.partial != kernels::cuda::kWhole) continue;
      const kernels::cuda::BatchSequence& sequence = sequences[item.sequence];
      const kernels::cuda::SeenKeys keys(shape.window, sequence);
      for (std::uint32_t s = 0; s < keys.sink_splits(); ++s) {
        ++seen[{item.sequence, item.tile * tile_rows + row, s + kSinkSplits}];
      }
    }
    if (item.partial == kernels::cuda::kWhole) finished += rows_of(item, tile_rows);
  };
  for (const AttentionItem& item : plan.items) take(item, kernels::cuda::kQueryRows);
  for (const AttentionItem& item : plan.wide) take(item, kernels::cuda::wide_rows(shape.head_dim));
  std::uint64_t rows = 0;
  for (std::uint32_t s = 0; s < sequences.size(); ++s) {
    for (std::uint32_t row = 0; row < sequences[s].rows * group; ++row) {
      const std::uint32_t position = sequences[s].first_position + row / group;
      const kernels::cuda::SeenKeys keys(shape.window, sequences[s]);
      const auto expect_once = [&](std::uint32_t split) {
        const auto found = seen.find({s, row, split});
        ASSERT_NE(found, seen.end()) << "sequence " << s << ", row " << row << ", split " << split;
        ASSERT_EQ(found->second, 1);
      };
      for (std::uint32_t split = keys.first(position) / kernels::cuda::kSplitKeys;
           split <= position / kernels::cuda::kSplitKeys; ++split) {
        expect_once(split);
      }
      for (std::uint32_t split = 0; keys.has_gap(position) && split < keys.sink_splits(); ++split) {
        expect_once(split + kSinkSplits);
      }
    }
    rows += sequences[s].rows * group;
  }
  std::uint64_t next = 0;
  for (const AttentionItem& merge : plan.merges) {
    EXPECT_EQ(merge.partial, next) << "partials follow each other";
    const std::uint32_t merged = rows_of(merge, kernels::cuda::kQueryRows);
    next += std::uint64_t{merge.last_split - merge.first_split} * merged * shape.kv_heads;
    for (const AttentionItem& item : plan.items) {
      if (item.sequence != merge.sequence || item.tile != merge.tile) continue;
      const kernels::cuda::SeenKeys keys(shape.window, sequences[item.sequence]);
      const std::uint32_t before = item.sinks == 0 ? item.first_split - merge.first_split
                                                   : merge.last_split - merge.first_split -
                                                         keys.sink_splits() + item.first_split;
      EXPECT_EQ(item.partial, merge.partial + before * merged * shape.kv_heads);
    }
    finished += merged;
  }
  EXPECT_EQ(finished, rows) << "every row is finished once";
}

TEST(AttentionPlanTest, EverySplitOfEveryRowIsAttendedOnce) {
  const kernels::cuda::BatchSequence sequences[] = {
      {0, 1, 0, 0}, {1, 1, 4095, 1}, {2, 37, 700, 300}, {39, 300, 0, 400}, {339, 1, 255, 500}};
  for (const std::uint32_t blocks : {1u, 40u, 300u, 100000u}) {
    for (const std::uint32_t wide_blocks : {0u, 20u, ~0u}) {
      const model::AttentionLimits limits = {
          .blocks = blocks, .items = 4096, .wide_blocks = wide_blocks};
      for (const std::uint32_t window : {0u, 300u}) {
        expect_plan_covers(sequences, {.heads = 32, .kv_heads = 8, .window = window}, limits);
        expect_plan_covers(sequences, {.heads = 9, .kv_heads = 3, .window = window}, limits);
        expect_plan_covers(sequences, {.heads = 32, .kv_heads = 1, .window = window}, limits);
        expect_plan_covers(sequences,
                           {.heads = 4, .kv_heads = 4, .window = window, .head_dim = 256}, limits);
      }
    }
  }
}

TEST(AttentionPlanTest, SinksOfRowsThatSeeAGapAreAttendedOnceBehindTheirWindow) {
  std::vector<kernels::cuda::BatchSequence> sequences = {
      {0, 1, 0, 0}, {1, 1, 4095, 1}, {2, 37, 700, 300}, {39, 300, 0, 400}, {339, 1, 255, 500}};
  for (const std::uint32_t sinks : {0u, 4u, 300u}) {
    for (kernels::cuda::BatchSequence& sequence : sequences) {
      sequence.window = 200;
      sequence.sinks = sinks;
    }
    for (const std::uint32_t blocks : {1u, 40u, 300u, 100000u}) {
      const model::AttentionLimits limits = {.blocks = blocks, .items = 4096, .wide_blocks = 20};
      for (const std::uint32_t window : {0u, 300u}) {
        expect_plan_covers(sequences, {.heads = 32, .kv_heads = 8, .window = window}, limits);
        expect_plan_covers(sequences, {.heads = 9, .kv_heads = 3, .window = window}, limits);
      }
    }
  }
}

TEST(AttentionPlanTest, ManyRowsGoInWideTilesTheLongestFirstWhereTheyFillTheChip) {
  model::AttentionPlan plan;
  const kernels::cuda::BatchSequence sequences[] = {
      {0, 1, 3000, 0}, {1, 512, 0, 200}, {513, 512, 2048, 300}};
  plan.fill(sequences, {.heads = 32, .kv_heads = 8}, {});
  ASSERT_EQ(plan.wide.size(), 2u * 512 * 4 / 128);
  for (std::size_t i = 1; i < plan.wide.size(); ++i) {
    const AttentionItem& before = plan.wide[i - 1];
    EXPECT_GE(before.last_split - before.first_split,
              plan.wide[i].last_split - plan.wide[i].first_split);
  }
  for (const AttentionItem& item : plan.items) EXPECT_EQ(item.sequence, 0u);
  plan.fill(std::span(sequences).first(2), {.heads = 4, .kv_heads = 1}, {});
  EXPECT_TRUE(plan.wide.empty()) << "16 wide tiles of one KV head";
}

TEST(AttentionPlanTest, OneLongDecodeIsSharedAndManyShortOnesAreNot) {
  model::AttentionPlan plan;
  const kernels::cuda::BatchSequence one = {0, 1, 4000, 0};
  plan.fill({&one, 1}, {.heads = 32, .kv_heads = 8}, {});
  EXPECT_EQ(plan.items.size(), 16u);
  EXPECT_EQ(plan.merges.size(), 1u);
  const std::vector<kernels::cuda::BatchSequence> many(256, {0, 1, 1000, 0});
  plan.fill(many, {.heads = 32, .kv_heads = 8}, {});
  EXPECT_EQ(plan.items.size(), 256u);
  EXPECT_TRUE(plan.merges.empty());
}

}  // namespace
}  // namespace pagoda::gpu_test
