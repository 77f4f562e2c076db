// GEMMs on a GPU against their scalar reference, and rows alone against rows in batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/device_fixture.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using cuda::Bf16;
using cuda::WeightFormat;
using gguf::TensorType;

// A batch's activations: [rows] of bf16 values in blocks of 8 x 8.
std::vector<Bf16> activations_of(const std::vector<std::vector<Bf16>>& rows, std::size_t columns) {
  std::vector<Bf16> activations(cuda::activation_values(rows.size(), columns));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      activations[cuda::activation_index(r, c, rows.size())] = rows[r][c];
    }
  }
  return activations;
}

std::vector<std::vector<Bf16>> random_rows(std::size_t rows, std::size_t columns) {
  std::vector<std::vector<Bf16>> made(rows, std::vector<Bf16>(columns));
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      made[r][c] = bf16_from_float(uniform(r + 1, c, 2.0f));
    }
  }
  return made;
}

struct PackedOnGpu {
  std::vector<std::byte> bytes;
  device::Buffer buffer;
  cuda::PackedMatrix matrix;
};

PackedOnGpu pack(DeviceFixture& gpu, const RandomMatrix& from) {
  const WeightFormat format = cuda::weight_format_of(from.view.type);
  PackedOnGpu made;
  made.bytes.resize(cuda::packed_bytes(format, from.view.rows, from.view.columns));
  const std::size_t tiles = cuda::row_tiles(from.view.rows);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    cuda::SourceRow rows[cuda::kTileRows];
    for (std::size_t r = 0; r < cuda::kTileRows && tile * 16 + r < from.view.rows; ++r) {
      rows[r] = {&from.view, tile * 16 + r};
    }
    cuda::pack_row_tile(format, rows, from.view.columns,
                        made.bytes.data() + tile * (made.bytes.size() / tiles));
  }
  made.buffer = gpu.send(made.bytes);
  made.matrix = {format, made.buffer.data(), static_cast<std::uint32_t>(from.view.rows),
                 static_cast<std::uint32_t>(from.view.columns)};
  return made;
}

std::vector<float> multiply(DeviceFixture& gpu, const cuda::PackedMatrix& matrix,
                            const std::vector<std::vector<Bf16>>& rows) {
  const device::Buffer x = gpu.send(activations_of(rows, matrix.columns));
  const device::Buffer y = gpu.poisoned(rows.size() * matrix.rows * 4);
  cuda::launch_gemm({.weight = matrix,
                     .x = x.as<Bf16>(),
                     .rows = static_cast<std::uint32_t>(rows.size()),
                     .out = y.as<float>(),
                     .out_stride = matrix.rows},
                    gpu.stream().handle());
  return gpu.fetch<float>(y, rows.size() * matrix.rows);
}

class GemmTest : public testing::TestWithParam<TensorType> {};

// A tensor core keeps about 24 bits of the largest term of a step: K / 16 such cuts at most.
TEST_P(GemmTest, EqualsItsReferenceWithinTheTensorCoresRounding) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const auto block = static_cast<int>(gguf::tensor_type_info(GetParam()).block_elements);
  for (const auto& [outputs, columns] :
       {std::pair{100, 256}, {576, 768}, {2048, 1536}, {16, 64}, {40, 96}, {33, 576}}) {
    if (columns % block != 0) continue;
    const PackedOnGpu weight = pack(gpu, random_matrix(GetParam(), outputs, columns, 3));
    const auto rows = random_rows(3, columns);
    const std::vector<float> y = multiply(gpu, weight.matrix, rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> expected = cuda::reference::gemm(
          weight.matrix.format, weight.bytes.data(), outputs, columns, rows[r].data());
      for (int n = 0; n < outputs; ++n) {
        ASSERT_NEAR(y[r * outputs + n], expected[n],
                    (1.0f + std::abs(expected[n])) * static_cast<float>(columns / 16) * 0x1p-22f)
            << outputs << " x " << columns << ", row " << r << ", output " << n;
      }
    }
  }
}

// Both widths divide into parts of K unevenly or evenly; every kernel has some of the counts.
TEST_P(GemmTest, ARowsBitsDoNotDependOnTheRowsBesideIt) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  for (const std::size_t columns : {1024, 768}) {
    const PackedOnGpu weight = pack(gpu, random_matrix(GetParam(), 720, columns, 4));
    const auto rows = random_rows(300, columns);
    const std::vector<float> alone = multiply(gpu, weight.matrix, {rows[0]});
    for (const std::size_t count : {2, 8, 9, 16, 17, 31, 32, 33, 64, 65, 100, 128, 200, 256, 300}) {
      std::vector<std::vector<Bf16>> batch(rows.begin(), rows.begin() + count);
      for (const std::size_t place : {std::size_t{0}, count / 2, count - 1}) {
        std::swap(batch[0], batch[place]);
        const std::vector<float> y = multiply(gpu, weight.matrix, batch);
        ASSERT_EQ(std::memcmp(y.data() + place * 720, alone.data(), 720 * 4), 0)
            << "row " << place << " of " << count << ", " << columns << " columns";
        std::swap(batch[0], batch[place]);
      }
    }
  }
}

// Enough weight rows that the largest tiles are chosen, and several of them for each block.
TEST_P(GemmTest, ManyWeightRowsHaveTheBitsOfFew) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const std::size_t columns = 256;
  const std::size_t outputs = 20000;
  const RandomMatrix matrix = random_matrix(GetParam(), outputs, columns, 6);
  const PackedOnGpu weight = pack(gpu, matrix);
  RandomMatrix last = matrix;
  last.view.rows = 40;
  last.view.data = matrix.view.data + (outputs - 40) * matrix.view.row_bytes;
  const PackedOnGpu few = pack(gpu, last);
  const auto rows = random_rows(300, columns);
  const std::vector<float> alone = multiply(gpu, few.matrix, {rows[0]});
  for (const std::size_t count : {1, 7, 16, 30, 60, 120, 300}) {
    const std::vector<std::vector<Bf16>> batch(rows.begin(), rows.begin() + count);
    const std::vector<float> y = multiply(gpu, weight.matrix, batch);
    ASSERT_EQ(std::memcmp(y.data() + outputs - 40, alone.data(), 40 * 4), 0) << count << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GemmTest,
                         testing::Values(TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1,
                                         TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ6_K,
                                         TensorType::kMXFP4));

std::vector<float> random_bias() {
  std::vector<float> bias(96);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = uniform(3, i, 1.0f);
  return bias;
}

class GemmEpilogueTest : public testing::TestWithParam<std::tuple<TensorType, int>> {};

TEST_P(GemmEpilogueTest, AddsBiasToWhatWasThere) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const auto& [type, count] = GetParam();
  const PackedOnGpu weight = pack(gpu, random_matrix(type, 96, 256, 9));
  const auto rows = random_rows(count, 256);
  const std::vector<float> y = multiply(gpu, weight.matrix, rows);
  const std::vector<float> bias = random_bias();
  const device::Buffer x = gpu.send(activations_of(rows, 256));
  const device::Buffer on_gpu = gpu.send(bias);
  const std::vector<float> before(count * 96, 0.5f);
  const device::Buffer sums = gpu.send(before);
  cuda::launch_gemm({.weight = weight.matrix,
                     .x = x.as<Bf16>(),
                     .rows = static_cast<std::uint32_t>(count),
                     .epilogue = cuda::Epilogue::kAdd,
                     .out = sums.as<float>(),
                     .out_stride = 96,
                     .bias = on_gpu.as<float>()},
                    gpu.stream().handle());
  const std::vector<float> added = gpu.fetch<float>(sums, count * 96);
  for (std::size_t i = 0; i < added.size(); ++i) {
    ASSERT_EQ(added[i], 0.5f + (y[i] + bias[i % 96]));
  }
}

struct Gate {
  cuda::Epilogue epilogue;
  float (*reference)(float gate, float up);
};
constexpr Gate kGates[] = {
    {cuda::Epilogue::kSwiGlu, cuda::reference::swiglu},
    {cuda::Epilogue::kGeGlu, cuda::reference::geglu},
    {cuda::Epilogue::kClampedSwiGlu, cuda::reference::clamped_swiglu},
};

TEST_P(GemmEpilogueTest, JoinsGatesAndUpsAfterTheirBiases) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const auto& [type, count] = GetParam();
  const PackedOnGpu weight = pack(gpu, random_matrix(type, 96, 256, 9));
  const auto rows = random_rows(count, 256);
  const std::vector<float> y = multiply(gpu, weight.matrix, rows);
  const std::vector<float> bias = random_bias();
  const device::Buffer x = gpu.send(activations_of(rows, 256));
  const device::Buffer on_gpu = gpu.send(bias);
  for (const Gate& gate : kGates) {
    for (const bool biased : {false, true}) {
      const device::Buffer gated = gpu.poisoned(2 * cuda::activation_values(count, 48));
      cuda::launch_gemm({.weight = weight.matrix,
                         .x = x.as<Bf16>(),
                         .rows = static_cast<std::uint32_t>(count),
                         .epilogue = gate.epilogue,
                         .bias = biased ? on_gpu.as<float>() : nullptr,
                         .activations = gated.as<Bf16>()},
                        gpu.stream().handle());
      const auto activations = gpu.fetch<Bf16>(gated, cuda::activation_values(count, 48));
      const auto value = [&](std::size_t row, std::size_t output) {
        return y[row * 96 + output] + (biased ? bias[output] : 0.0f);
      };
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t c = 0; c < 48; ++c) {
          const std::size_t output = c / 8 * 16 + c % 8;
          const float expected = gate.reference(value(r, output), value(r, output + 8));
          const float got = float_from_bf16(activations[cuda::activation_index(r, c, count)]);
          ASSERT_NEAR(got, expected, std::abs(expected) / 128 + 1e-30f)
              << "gate " << static_cast<int>(gate.epilogue) << ", row " << r << ", column " << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, GemmEpilogueTest,
                         testing::Combine(testing::Values(TensorType::kBF16, TensorType::kQ4_0,
                                                          TensorType::kQ8_0),
                                          testing::Values(1, 11, 20, 50, 130, 300)));

}  // namespace
}  // namespace pagoda::gpu_test
