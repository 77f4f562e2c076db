// Products of many matrices at once: each row has the bits of its product alone, and what experts
// give is mixed in the order of choice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/half.h"
#include "device/device_fixture.h"
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using cuda::Bf16;
using cuda::WeightFormat;
using gguf::TensorType;
using kernels::ChosenExpert;

constexpr std::uint32_t kMatrices = 5;
constexpr std::uint32_t kOutputs = 144;
constexpr std::uint32_t kColumns = 512;

// Matrices one after the other, as a layer's experts stand.
struct Packed {
  device::Buffer buffer;
  cuda::PackedMatrix first;
  std::size_t stride = 0;
};

Packed pack_all(DeviceFixture& gpu, TensorType type) {
  Packed made;
  const WeightFormat format = cuda::weight_format_of(type);
  made.stride = cuda::packed_bytes(format, kOutputs, kColumns);
  std::vector<std::byte> bytes(kMatrices * made.stride);
  for (std::uint32_t m = 0; m < kMatrices; ++m) {
    const RandomMatrix from = random_matrix(type, kOutputs, kColumns, 40 + m);
    const std::size_t tiles = cuda::row_tiles(kOutputs);
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      cuda::SourceRow rows[cuda::kTileRows];
      for (std::size_t r = 0; r < cuda::kTileRows; ++r) rows[r] = {&from.view, tile * 16 + r};
      cuda::pack_row_tile(format, rows, kColumns,
                          bytes.data() + m * made.stride + tile * (made.stride / tiles));
    }
  }
  made.buffer = gpu.send(bytes);
  made.first = {format, made.buffer.data(), kOutputs, kColumns};
  return made;
}

std::vector<Bf16> random_row(std::size_t seed) {
  std::vector<Bf16> row(kColumns);
  for (std::size_t c = 0; c < kColumns; ++c) row[c] = bf16_from_float(uniform(seed, c, 2.0f));
  return row;
}

std::vector<Bf16> activations_of(const std::vector<std::vector<Bf16>>& rows) {
  std::vector<Bf16> made(cuda::activation_values(rows.size(), kColumns));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      made[cuda::activation_index(r, c, rows.size())] = rows[r][c];
    }
  }
  return made;
}

class GroupedGemm : public testing::TestWithParam<TensorType> {
 protected:
  // The product of one row with one matrix, alone.
  std::vector<float> alone(std::uint32_t matrix, const std::vector<Bf16>& row) {
    const device::Buffer x = gpu().send(activations_of({row}));
    const device::Buffer y = gpu().poisoned(kOutputs * 4);
    cuda::PackedMatrix weight = packed_.first;
    weight.data += matrix * packed_.stride;
    cuda::launch_gemm({.weight = weight,
                       .x = x.as<Bf16>(),
                       .rows = 1,
                       .out = y.as<float>(),
                       .out_stride = kOutputs},
                      gpu().stream().handle());
    return gpu().fetch<float>(y, kOutputs);
  }

  DeviceFixture& gpu() { return *gpu_; }
  void open() {
    gpu_.emplace();
    packed_ = pack_all(*gpu_, GetParam());
  }

  std::optional<DeviceFixture> gpu_;
  Packed packed_;
};

// Rows of several matrices, from none to more than a large tile; every kernel has some.
TEST_P(GroupedGemm, ARowHasTheBitsOfItsProductAlone) {
  REQUIRE_GPU();
  open();
  const std::vector<std::vector<std::uint32_t>> cases = {
      {1, 0, 0, 1, 0}, {3, 8, 0, 1, 5}, {9, 2, 16, 0, 11}, {70, 3, 17, 0, 130}, {0, 0, 20, 0, 0}};
  for (const std::vector<std::uint32_t>& counts : cases) {
    std::vector<cuda::GemmGroup> groups;
    std::vector<cuda::GemmTile> tiles;
    std::vector<Bf16> x;
    std::uint32_t most = 0;
    std::uint32_t slots = 0;
    for (std::uint32_t m = 0; m < kMatrices; ++m) {
      if (counts[m] == 0) continue;
      most = std::max(most, counts[m]);
      for (std::uint32_t t = 0; counts[m] > cuda::kSmallRows && t * cuda::kLargeRows < counts[m];
           ++t) {
        tiles.push_back({static_cast<std::uint32_t>(groups.size()), t});
      }
      groups.push_back({m, slots, counts[m]});
      std::vector<std::vector<Bf16>> rows;
      for (std::uint32_t r = 0; r < counts[m]; ++r) rows.push_back(random_row(100 * m + r));
      const std::vector<Bf16> own = activations_of(rows);
      x.insert(x.end(), own.begin(), own.end());
      slots += (counts[m] + 7) / 8 * 8;
    }
    const std::vector<std::uint32_t> both = {static_cast<std::uint32_t>(groups.size()),
                                             static_cast<std::uint32_t>(tiles.size())};
    const device::Buffer x_on_gpu = gpu().send(x);
    const device::Buffer y = gpu().poisoned(std::size_t{slots} * kOutputs * 4);
    const device::Buffer counts_on_gpu = gpu().send(both);
    const device::Buffer groups_on_gpu = gpu().send(groups);
    tiles.push_back({0, 0});  // there is always memory
    const device::Buffer tiles_on_gpu = gpu().send(tiles);
    cuda::launch_grouped_gemm({.gemm = {.weight = packed_.first,
                                        .x = x_on_gpu.as<Bf16>(),
                                        .rows = most,
                                        .out = y.as<float>(),
                                        .out_stride = kOutputs},
                               .weight_stride = packed_.stride,
                               .groups = groups_on_gpu.as<cuda::GemmGroup>(),
                               .tiles = tiles_on_gpu.as<cuda::GemmTile>(),
                               .counts = counts_on_gpu.as<std::uint32_t>(),
                               .groups_max = both[0] + 2,
                               .tiles_max = both[1] + 3},
                              gpu().stream().handle());
    const auto got = gpu().fetch<float>(y, std::size_t{slots} * kOutputs);
    for (const cuda::GemmGroup& group : groups) {
      for (const std::uint32_t r : {0u, group.rows / 2, group.rows - 1}) {
        const std::vector<float> expected = alone(group.matrix, random_row(100 * group.matrix + r));
        ASSERT_EQ(std::memcmp(got.data() + std::size_t{group.first_slot + r} * kOutputs,
                              expected.data(), kOutputs * 4),
                  0)
            << "row " << r << " of " << group.rows << " of matrix " << group.matrix;
      }
    }
  }
}

// A batch of one row is multiplied by all matrices where it is.
TEST_P(GroupedGemm, GroupsMayShareARow) {
  REQUIRE_GPU();
  open();
  const std::vector<cuda::GemmGroup> groups = {{1, 0, 1}, {4, 8, 1}};
  const device::Buffer x = gpu().send(activations_of({random_row(77)}));
  const device::Buffer y = gpu().poisoned(16 * kOutputs * 4);
  const device::Buffer counts = gpu().send(std::vector<std::uint32_t>{2, 0});
  const device::Buffer groups_on_gpu = gpu().send(groups);
  cuda::launch_grouped_gemm({.gemm = {.weight = packed_.first,
                                      .x = x.as<Bf16>(),
                                      .rows = 1,
                                      .out = y.as<float>(),
                                      .out_stride = kOutputs},
                             .weight_stride = packed_.stride,
                             .groups = groups_on_gpu.as<cuda::GemmGroup>(),
                             .counts = counts.as<std::uint32_t>(),
                             .groups_max = 3,
                             .shares_x = true},
                            gpu().stream().handle());
  const auto got = gpu().fetch<float>(y, 16 * kOutputs);
  for (const cuda::GemmGroup& group : groups) {
    const std::vector<float> expected = alone(group.matrix, random_row(77));
    ASSERT_EQ(std::memcmp(got.data() + group.first_slot * kOutputs, expected.data(), kOutputs * 4),
              0)
        << "matrix " << group.matrix;
  }
}

// Without groups every matrix takes all rows, and its outputs stand side by side.
TEST_P(GroupedGemm, WithoutGroupsEveryMatrixHasAllRows) {
  REQUIRE_GPU();
  open();
  for (const std::uint32_t count : {1u, 7u, 16u, 33u, 100u}) {
    std::vector<Bf16> x;
    for (std::uint32_t m = 0; m < kMatrices; ++m) {
      std::vector<std::vector<Bf16>> rows;
      for (std::uint32_t r = 0; r < count; ++r) rows.push_back(random_row(1000 * m + r));
      const std::vector<Bf16> own = activations_of(rows);
      x.insert(x.end(), own.begin(), own.end());
    }
    const std::size_t stride = kMatrices * (kOutputs + 8);
    const device::Buffer x_on_gpu = gpu().send(x);
    const device::Buffer y = gpu().poisoned(count * stride * 4);
    cuda::launch_grouped_gemm({.gemm = {.weight = packed_.first,
                                        .x = x_on_gpu.as<Bf16>(),
                                        .rows = count,
                                        .out = y.as<float>(),
                                        .out_stride = stride},
                               .weight_stride = packed_.stride,
                               .groups_max = kMatrices,
                               .group_columns = kOutputs + 8},
                              gpu().stream().handle());
    const auto got = gpu().fetch<float>(y, count * stride);
    for (std::uint32_t m = 0; m < kMatrices; ++m) {
      for (const std::uint32_t r : {0u, count - 1}) {
        const std::vector<float> expected = alone(m, random_row(1000 * m + r));
        ASSERT_EQ(std::memcmp(got.data() + r * stride + m * (kOutputs + 8), expected.data(),
                              kOutputs * 4),
                  0)
            << "row " << r << " of " << count << ", matrix " << m;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GroupedGemm,
                         testing::Values(TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1,
                                         TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ6_K,
                                         TensorType::kMXFP4));

// Eleven rows with two experts each. Rows stand backwards in the slots of their experts; row 4
// chose nobody.
struct DealtRows {
  static constexpr std::uint32_t kRows = 11;
  static constexpr std::uint32_t kChosen = 2;
  static constexpr std::uint32_t kWidth = 200;
  static constexpr std::uint32_t kSlots = 32;
  static constexpr std::uint32_t kNobodys = 4;
  std::vector<cuda::GemmGroup> groups = {{3, 0, kRows}, {7, 16, kRows}};
  std::vector<ChosenExpert> chosen;
  std::vector<std::uint32_t> group_of_pair;
  std::vector<std::uint32_t> slot_of_pair;

  DealtRows() {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      for (std::uint32_t i = 0; i < kChosen; ++i) {
        const bool there = row != kNobodys;
        const float weight = uniform(5, row * 2 + i, 1.0f);
        chosen.push_back({there ? groups[i].matrix : cuda::kNoExpert, weight});
        group_of_pair.push_back(there ? i : cuda::kNoExpert);
        slot_of_pair.push_back(there ? groups[i].first_slot + (kRows - 1 - row) : 0);
      }
    }
  }
};

TEST(ExpertRows, GoToTheirSlots) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const DealtRows dealt;
  constexpr std::uint32_t kRows = DealtRows::kRows;
  std::vector<Bf16> x(cuda::activation_values(kRows, DealtRows::kWidth));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_from_float(uniform(6, i, 1.0f));
  const device::Buffer x_on_gpu = gpu.send(x);
  const device::Buffer groups = gpu.send(dealt.groups);
  const device::Buffer group_of_pair = gpu.send(dealt.group_of_pair);
  const device::Buffer slot_of_pair = gpu.send(dealt.slot_of_pair);
  const std::size_t padded = cuda::chunks_of(DealtRows::kWidth) * cuda::kChunkColumns;
  const device::Buffer gathered = gpu.poisoned(DealtRows::kSlots * padded * 2);
  cuda::launch_gather_rows({.x = x_on_gpu.as<Bf16>(),
                            .rows = kRows,
                            .columns = DealtRows::kWidth,
                            .chosen = DealtRows::kChosen,
                            .groups = groups.as<cuda::GemmGroup>(),
                            .group_of_pair = group_of_pair.as<std::uint32_t>(),
                            .slot_of_pair = slot_of_pair.as<std::uint32_t>(),
                            .gathered = gathered.as<Bf16>()},
                           gpu.stream().handle());
  const auto got = gpu.fetch<Bf16>(gathered, DealtRows::kSlots * padded);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    for (std::uint32_t i = 0; i < DealtRows::kChosen && row != DealtRows::kNobodys; ++i) {
      const std::size_t first = dealt.groups[i].first_slot * padded;
      for (std::size_t c = 0; c < padded; ++c) {
        ASSERT_EQ(got[first + cuda::activation_index(kRows - 1 - row, c, kRows)],
                  x[cuda::activation_index(row, c, kRows)]);
      }
    }
  }
}

// Weighed in the order of choice, then the shared expert's; written, then added to what is there.
TEST(ExpertRows, AreMixedInTheOrderOfChoice) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const DealtRows dealt;
  constexpr std::uint32_t kWidth = DealtRows::kWidth;
  std::vector<float> results(DealtRows::kSlots * kWidth);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = uniform(7, i, 1.0f);
  std::vector<float> shared(DealtRows::kRows * kWidth);
  for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = uniform(8, i, 1.0f);
  const device::Buffer chosen = gpu.send(dealt.chosen);
  const device::Buffer slot_of_pair = gpu.send(dealt.slot_of_pair);
  const device::Buffer results_on_gpu = gpu.send(results);
  const device::Buffer shared_on_gpu = gpu.send(shared);
  const device::Buffer out = gpu.poisoned(shared.size() * 4);
  cuda::MixExperts job = {.chosen = chosen.as<ChosenExpert>(),
                          .chosen_each = DealtRows::kChosen,
                          .slot_of_pair = slot_of_pair.as<std::uint32_t>(),
                          .results = results_on_gpu.as<float>(),
                          .shared = shared_on_gpu.as<float>(),
                          .rows = DealtRows::kRows,
                          .width = kWidth,
                          .out = out.as<float>()};
  cuda::launch_mix_experts(job, gpu.stream().handle());
  const auto got = gpu.fetch<float>(out, shared.size());
  for (std::uint32_t at = 0; at < got.size(); ++at) {
    float sum = 0;
    for (std::uint32_t i = 0; i < DealtRows::kChosen; ++i) {
      const std::uint32_t pair = at / kWidth * DealtRows::kChosen + i;
      if (dealt.chosen[pair].expert == cuda::kNoExpert) continue;
      const float weighed =
          dealt.chosen[pair].weight * results[dealt.slot_of_pair[pair] * kWidth + at % kWidth];
      sum += weighed;
    }
    ASSERT_EQ(got[at], sum + shared[at]) << at;
  }
  job.adds = true;
  job.scale = 0.3f;
  cuda::launch_mix_experts(job, gpu.stream().handle());
  const auto added = gpu.fetch<float>(out, shared.size());
  for (std::size_t i = 0; i < added.size(); ++i) {
    const float scaled = got[i] * 0.3f;
    ASSERT_EQ(added[i], got[i] + scaled);
  }
}

}  // namespace
}  // namespace pagoda::gpu_test
