// Compares every readable type with data/dequantise, which numpy code outside of this project
// computed; its layout is in make_dequantise_fixtures.py.
#include "kernels/ref/dequantise.h"
#include "test_data.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace pagoda::kernels::ref {
namespace {

using gguf::TensorTypeInfo;

struct Fixture {
  std::vector<std::byte> row;
  std::vector<float> floats;
};

std::vector<TensorTypeInfo> readable_types() {
  std::vector<TensorTypeInfo> types;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const auto info = gguf::find_tensor_type(id);
    if (info && info->readable) types.push_back(*info);
  }
  return types;
}

Fixture load_fixture(const TensorTypeInfo& type) {
  const std::string path = test_data() + "/dequantise/" + std::string(type.name) + ".bin";
  std::ifstream stream(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(stream)), {});
  const std::size_t pair_bytes = type.block_bytes + type.block_elements * sizeof(float);
  EXPECT_GT(content.size(), 0u) << path;
  EXPECT_EQ(content.size() % pair_bytes, 0u) << path;
  const std::size_t blocks = content.size() / pair_bytes;
  Fixture fixture{std::vector<std::byte>(blocks * type.block_bytes),
                  std::vector<float>(blocks * type.block_elements)};
  std::memcpy(fixture.row.data(), content.data(), fixture.row.size());
  std::memcpy(fixture.floats.data(), content.data() + fixture.row.size(),
              fixture.floats.size() * sizeof(float));
  return fixture;
}

// Equal bits, or both NaN (whose payload is not part of the contract).
bool same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

class DequantiseTest : public ::testing::TestWithParam<TensorTypeInfo> {};

TEST_P(DequantiseTest, EqualsTheNumpyReferenceBitForBit) {
  const Fixture fixture = load_fixture(GetParam());
  std::vector<float> out(fixture.floats.size(), -1.0f);
  dequantise_row(GetParam().type, fixture.row.data(), out.data(), out.size());
  for (std::size_t index = 0; index < out.size(); ++index) {
    ASSERT_TRUE(same(out[index], fixture.floats[index]))
        << "element " << index << " is " << out[index] << ", expected " << fixture.floats[index];
  }
}

TEST_P(DequantiseTest, AnUnalignedRowReadsTheSame) {
  const Fixture fixture = load_fixture(GetParam());
  std::vector<std::byte> shifted(fixture.row.size() + 1);
  std::memcpy(shifted.data() + 1, fixture.row.data(), fixture.row.size());
  std::vector<float> out(fixture.floats.size(), -1.0f);
  dequantise_row(GetParam().type, shifted.data() + 1, out.data(), out.size());
  for (std::size_t index = 0; index < out.size(); ++index) {
    ASSERT_TRUE(same(out[index], fixture.floats[index])) << "element " << index;
  }
}

TEST_P(DequantiseTest, ABlockDependsOnItsOwnBytesAndWritesItsOwnElementsOnly) {
  const Fixture fixture = load_fixture(GetParam());
  const std::size_t block = GetParam().block_elements;
  std::vector<float> out(block + 2, -77.0f);
  const std::vector<std::byte> last(fixture.row.end() - GetParam().block_bytes, fixture.row.end());
  dequantise_row(GetParam().type, last.data(), out.data() + 1, block);
  EXPECT_EQ(out.front(), -77.0f);
  EXPECT_EQ(out.back(), -77.0f);
  const std::size_t first = fixture.floats.size() - block;
  for (std::size_t index = 0; index < block; ++index) {
    ASSERT_TRUE(same(out[index + 1], fixture.floats[first + index])) << "element " << index;
  }
}

INSTANTIATE_TEST_SUITE_P(ReadableTypes, DequantiseTest, ::testing::ValuesIn(readable_types()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Dequantise, EveryReadableTypeIsCompared) { EXPECT_EQ(readable_types().size(), 26u); }

TEST(Dequantise, ARowOfNoElementsReadsAndWritesNothing) {
  float beyond = -77.0f;
  dequantise_row(gguf::TensorType::kQ4_K, nullptr, &beyond, 0);
  EXPECT_EQ(beyond, -77.0f);
}

TEST(DequantiseDeathTest, CodebookTypesAndPartBlocksAreOurBugs) {
  std::vector<std::byte> row(256);
  std::vector<float> out(256);
  EXPECT_DEATH(dequantise_row(gguf::TensorType::kIQ2_XXS, row.data(), out.data(), 256),
               "the type is readable");
  EXPECT_DEATH(dequantise_row(gguf::TensorType::kQ4_0, row.data(), out.data(), 33),
               "a row is whole blocks");
}

}  // namespace
}  // namespace pagoda::kernels::ref
