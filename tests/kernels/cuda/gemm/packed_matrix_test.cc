// The layout of packed weights, checked without a GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/gemm/packed_matrix.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"
#include "kernels/select.h"

namespace pagoda::gpu_test {
namespace {

using gguf::TensorType;
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
                                         TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kMXFP4));

TEST(PackedMatrixSizes, QuantisedWeightsTakeTheirBitsAndAScaleEach) {
  EXPECT_EQ(kernels::cuda::packed_bytes(WeightFormat::kBf16, 16, 64), 16u * 64 * 2);
  EXPECT_EQ(kernels::cuda::packed_bytes(WeightFormat::kInt4, 32, 128),
            4u * (16 * 64 / 2 + 16 * 2 * 2));
  EXPECT_EQ(kernels::cuda::packed_bytes(WeightFormat::kInt8, 1, 1), 16u * 64 + 16 * 2 * 2);
}

}  // namespace
}  // namespace pagoda::gpu_test
