// Layouts and plans: what the GPU is given, checked without one.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

#include "kernels/cuda/gemm/packed_matrix.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"
#include "kernels/select.h"
#include "model/attention_plan.h"

namespace pagoda::gpu_test {
namespace {

using gguf::TensorType;
using kernels::cuda::AttentionItem;
using kernels::cuda::SourceRow;
using kernels::cuda::WeightFormat;

std::vector<std::byte> packed(const kernels::WeightMatrix& matrix, WeightFormat format) {
  std::vector<std::byte> bytes(kernels::cuda::packed_bytes(format, matrix.rows, matrix.columns));
  const std::size_t tiles = kernels::cuda::row_tiles(matrix.rows);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    SourceRow rows[kernels::cuda::kTileRows];
    for (std::size_t r = 0; r < kernels::cuda::kTileRows; ++r) {
      const std::size_t row = tile * kernels::cuda::kTileRows + r;
      if (row < matrix.rows) rows[r] = {&matrix, row};
    }
    kernels::cuda::pack_row_tile(format, rows, matrix.columns,
                                 bytes.data() + tile * (bytes.size() / tiles));
  }
  return bytes;
}

class PackedMatrixTest : public testing::TestWithParam<TensorType> {};

// A weight read back is what the file says, within the rounding of its format: bf16 values keep
// eight bits, scales that are products eleven.
TEST_P(PackedMatrixTest, HoldsTheWeightsOfTheFile) {
  const RandomMatrix matrix = random_matrix(GetParam(), 37, 768, 5);
  const WeightFormat format = kernels::cuda::weight_format_of(GetParam());
  const std::vector<std::byte> bytes = packed(matrix.view, format);
  std::vector<float> row(768);
  for (std::size_t r = 0; r < 37; ++r) {
    kernels::ref_set().unpack_row(matrix.view, r, row.data());
    for (std::size_t c = 0; c < 768; ++c) {
      const float largest = std::sqrt(3.0f / 768.0f);
      const float bound =
          format == WeightFormat::kBf16 ? std::abs(row[c]) / 256 : largest * 0x1p-9f;
      ASSERT_NEAR(kernels::cuda::reference::weight_at(format, bytes.data(), 768, r, c), row[c],
                  bound)
          << "row " << r << ", column " << c;
    }
  }
}

TEST_P(PackedMatrixTest, RowsAndColumnsBeyondTheMatrixAreZero) {
  const RandomMatrix matrix = random_matrix(GetParam(), 5, 256, 6);
  const WeightFormat format = kernels::cuda::weight_format_of(GetParam());
  const std::vector<std::byte> bytes = packed(matrix.view, format);
  for (std::size_t c = 0; c < 256; ++c) {
    const float beyond = kernels::cuda::reference::weight_at(format, bytes.data(), 256, 9, c);
    ASSERT_EQ(std::abs(beyond), 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackedMatrixTest,
                         testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                         TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ8_0,
                                         TensorType::kQ4_K, TensorType::kQ6_K));

TEST(PackedMatrixSizes, QuantisedWeightsTakeTheirBitsAndAScaleEach) {
  EXPECT_EQ(kernels::cuda::packed_bytes(WeightFormat::kBf16, 16, 64), 16u * 64 * 2);
  EXPECT_EQ(kernels::cuda::packed_bytes(WeightFormat::kInt4, 32, 128),
            4u * (16 * 64 / 2 + 16 * 2 * 2));
  EXPECT_EQ(kernels::cuda::packed_bytes(WeightFormat::kInt8, 1, 1), 16u * 64 + 16 * 2 * 2);
}

// The reference of attention is a softmax: splits, tiles and their merges change it by rounding
// alone.
TEST(ReferenceTest, AttentionIsASoftmaxOverTheVisibleKeys) {
  const std::size_t dim = 64;
  const std::uint64_t position = 700;
  std::vector<float> keys((position + 1) * dim);
  std::vector<float> values(keys.size());
  std::vector<float> q(dim);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = float_from_bf16(bf16_from_float(uniform(1, i, 2.0f)));
    values[i] = float_from_bf16(bf16_from_float(uniform(2, i, 1.0f)));
  }
  for (std::size_t i = 0; i < dim; ++i)
    q[i] = float_from_bf16(bf16_from_float(uniform(3, i, 2.0f)));
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{300}}) {
    std::vector<double> expected(dim);
    double sum = 0;
    for (std::uint64_t key = first; key <= position; ++key) {
      double score = 0;
      for (std::size_t d = 0; d < dim; ++d) score += double{q[d]} * keys[key * dim + d];
      const double weight = std::exp(score * 0.125);
      sum += weight;
      for (std::size_t d = 0; d < dim; ++d) expected[d] += weight * values[key * dim + d];
    }
    const std::vector<float> got = kernels::cuda::reference::attention(
        {.q = q.data(), .dim = dim, .scale = 0.125f, .first = first, .position = position},
        keys.data(), values.data());
    for (std::size_t d = 0; d < dim; ++d) ASSERT_NEAR(got[d], expected[d] / sum, 0x1p-8) << d;
  }
}

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
        ++seen[{item.sequence, item.tile * tile_rows + row, s}];
      }
    }
    if (item.partial == kernels::cuda::kWhole) finished += rows_of(item, tile_rows);
  };
  for (const AttentionItem& item : plan.items) take(item, kernels::cuda::kQueryRows);
  for (const AttentionItem& item : plan.wide) take(item, kernels::cuda::wide_rows(shape.head_dim));
  std::uint64_t rows = 0;
  for (std::uint32_t s = 0; s < sequences.size(); ++s) {
    for (std::uint32_t row = 0; row < sequences[s].rows * group; ++row) {
      const std::uint64_t position = sequences[s].first_position + row / group;
      const auto splits =
          kernels::visible_splits(position, shape.window, kernels::cuda::kSplitKeys);
      for (std::uint64_t split = splits.first; split < splits.last; ++split) {
        const auto found = seen.find({s, row, static_cast<std::uint32_t>(split)});
        ASSERT_NE(found, seen.end()) << "sequence " << s << ", row " << row << ", split " << split;
        ASSERT_EQ(found->second, 1);
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
      EXPECT_EQ(item.partial,
                merge.partial + (item.first_split - merge.first_split) * merged * shape.kv_heads);
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
