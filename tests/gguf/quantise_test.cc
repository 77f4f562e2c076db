#include "gguf/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gguf/sha256.h"
#include "kernels/ref/dequantise.h"
#include "test_data.h"

namespace pagoda::gguf {
namespace {

struct QuantisedFixture {
  std::vector<float> row;
  std::string blocks;
};

// A row of whole blocks of 32, and the blocks that the PyPI package gguf makes of it.
QuantisedFixture read_fixture(TensorType type) {
  const TensorTypeInfo& info = tensor_type_info(type);
  const std::string path = test_data() + "/quantise/" + std::string(info.name) + ".bin";
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t blocks = bytes.size() / (32 * sizeof(float) + info.block_bytes);
  QuantisedFixture fixture{std::vector<float>(blocks * 32), {}};
  std::memcpy(fixture.row.data(), bytes.data(), fixture.row.size() * sizeof(float));
  fixture.blocks = bytes.substr(fixture.row.size() * sizeof(float));
  return fixture;
}

std::string quantised(TensorType type, const std::vector<float>& values) {
  const TensorTypeInfo& info = tensor_type_info(type);
  std::string blocks(values.size() / info.block_elements * info.block_bytes, '\xAA');
  EXPECT_TRUE(quantise_row(type, values, reinterpret_cast<std::byte*>(blocks.data())));
  return blocks;
}

std::vector<float> dequantised(TensorType type, const std::string& blocks, std::size_t count) {
  std::vector<float> values(count);
  kernels::ref::dequantise_row(type, reinterpret_cast<const std::byte*>(blocks.data()),
                               values.data(), count);
  return values;
}

// The root of the mean square difference that quantising makes.
double rmse(TensorType type, const std::vector<float>& values) {
  const std::vector<float> made = dequantised(type, quantised(type, values), values.size());
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += (double{values[i]} - made[i]) * (double{values[i]} - made[i]);
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::vector<float> normal_values(std::size_t count, float mean, float spread) {
  std::mt19937 bits(20261116);
  std::vector<float> values(count);
  // The sum of 12 uniform numbers: normal enough, and the same with every library.
  for (float& value : values) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(bits()) * 0x1.0p-32;
    value = static_cast<float>(mean + spread * sum);
  }
  return values;
}

TEST(Quantise, Q8_0AndQ4_0AreWhatThePackageGgufMakes) {
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
    const QuantisedFixture fixture = read_fixture(type);
    ASSERT_GE(fixture.row.size(), 20U * 32);
    const std::string ours = quantised(type, fixture.row);
    const std::size_t bytes = tensor_type_info(type).block_bytes;
    for (std::size_t at = 0; at < ours.size(); at += bytes) {
      EXPECT_EQ(ours.substr(at, bytes), fixture.blocks.substr(at, bytes)) << "block " << at / bytes;
    }
    EXPECT_EQ(ours.size(), fixture.blocks.size());
  }
}

// Measured: 0.0845 of the spread for Q4_0 and 0.0703 for Q4_K.
TEST(Quantise, Q4_KIsMuchNearerThanQ4_0) {
  for (const float spread : {1.0f, 0.02f}) {
    const std::vector<float> values = normal_values(256 * 200, 0, spread);
    EXPECT_LT(rmse(TensorType::kQ4_K, values), 0.0715 * spread);
    EXPECT_LT(rmse(TensorType::kQ4_K, values), 0.85 * rmse(TensorType::kQ4_0, values));
    EXPECT_LT(rmse(TensorType::kQ8_0, values), 0.008 * spread);
  }
}

// Codes of one sign in Q4_0 waste half of its range; a minimum does not.
TEST(Quantise, Q4_KFollowsGroupsThatLieBelowZero) {
  const std::vector<float> values = normal_values(256 * 50, -3, 0.5f);
  EXPECT_LT(rmse(TensorType::kQ4_K, values), 0.4 * rmse(TensorType::kQ4_0, values));
}

struct EdgeBlock {
  const char* name;
  std::vector<float> values;
  double error_max;  // of any value
};

std::vector<EdgeBlock> edge_blocks() {
  std::vector<EdgeBlock> blocks;
  blocks.push_back({"zeros", std::vector<float>(256, 0.0f), 0});
  blocks.push_back({"one positive value", std::vector<float>(256, 0.7f), 0.7 / 500});
  blocks.push_back({"one negative value", std::vector<float>(256, -0.7f), 0.7 / 500});
  std::vector<float> outlier(256, 0.0f);
  outlier[100] = 50.0f;
  blocks.push_back({"one value among zeros", outlier, 50.0 / 500});
  std::vector<float> grid(256);
  for (int i = 0; i < 256; ++i) grid[i] = 0.25f * static_cast<float>(i % 16) - 1.5f;
  blocks.push_back({"values on a grid", grid, 0.006});
  std::vector<float> tiny(256);
  for (int i = 0; i < 256; ++i) tiny[i] = 1e-12f * static_cast<float>(i - 128);
  blocks.push_back({"values below half precision", tiny, 2e-10});
  std::vector<float> least(256);
  for (int i = 0; i < 256; ++i) least[i] = 1e-45f * static_cast<float>(i - 128);
  blocks.push_back({"subnormal values", least, 1e-40});
  std::vector<float> large(256);
  for (int i = 0; i < 256; ++i) large[i] = 3e4f * static_cast<float>(i - 128);
  blocks.push_back({"large values", large, 1.3e5});
  return blocks;
}

TEST(Quantise, Q4_KTakesBlocksAtTheEdges) {
  for (const EdgeBlock& block : edge_blocks()) {
    const std::string made = quantised(TensorType::kQ4_K, block.values);
    const std::vector<float> values = dequantised(TensorType::kQ4_K, made, 256);
    for (int i = 0; i < 256; ++i) {
      EXPECT_NEAR(values[i], block.values[i], block.error_max) << block.name << " at " << i;
    }
  }
}

TEST(Quantise, ValuesWithoutAScaleAreRefused) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_K}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 1e38f,
                            -1e38f, 1.1e9f, -1.1e9f}) {
      for (const std::size_t at : {0U, 31U, 255U}) {
        std::vector<float> values(256, 0.5f);
        values[at] = bad;
        std::vector<std::byte> blocks(512);
        EXPECT_FALSE(quantise_row(type, values, blocks.data()))
            << tensor_type_info(type).name << ": " << bad << " at " << at;
      }
    }
  }
}

// The bytes of version 1 on every machine. Other bytes are another version: files that were kept
// must not be taken for them.
TEST(Quantise, TheBytesAreThoseOfTheVersion) {
  std::vector<float> values = normal_values(256 * 64, 0.1f, 0.3f);
  for (std::size_t i = 0; i < values.size(); i += 97) values[i] *= 8;
  Sha256 hash;
  const std::string blocks = quantised(TensorType::kQ4_K, values);
  hash.add(std::as_bytes(std::span(blocks)));
  EXPECT_EQ(kQuantiserVersion, 1);
  EXPECT_EQ(hash.finish(), "1e41e2bce2be6365c5fe52bc0a0d859a5ec84607e7135b57018d358f0173e16a");
}

}  // namespace
}  // namespace pagoda::gguf
