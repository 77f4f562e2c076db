#include "kernels/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "kernels/random_values.h"

namespace pagoda::kernels {
namespace {

constexpr std::size_t kBlocks[] = {1, 2, 8, 16, 32, 64, 128, 256};

// Element (i, j) of the matrix is 1 / sqrt(n), negative where i and j have an odd number of ones in
// common.
TEST(Hadamard, MultipliesEachBlockByTheMatrixOfItsSize) {
  for (const std::size_t block : kBlocks) {
    const std::vector<float> values = random_values(3 * block, 5);
    std::vector<float> turned = values;
    hadamard(turned.data(), turned.size(), block);
    for (std::size_t row = 0; row < turned.size(); ++row) {
      double expected = 0;
      double size = 0;
      for (std::size_t j = 0; j < block; ++j) {
        const double value = values[row / block * block + j];
        expected += std::popcount(row % block & j) % 2 == 0 ? value : -value;
        size += std::abs(value);
      }
      const double root = std::sqrt(static_cast<double>(block));
      ASSERT_NEAR(turned[row], expected / root, size / root * 1e-6) << block << " row " << row;
    }
  }
}

TEST(Hadamard, IsItsOwnInverse) {
  for (const std::size_t block : kBlocks) {
    const std::vector<float> values = random_values(2 * block, 6);
    std::vector<float> back = values;
    hadamard(back.data(), back.size(), block);
    hadamard(back.data(), back.size(), block);
    for (std::size_t i = 0; i < back.size(); ++i) {
      ASSERT_NEAR(back[i], values[i], 1e-4) << block;
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
