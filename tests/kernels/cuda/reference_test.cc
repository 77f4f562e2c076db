// The reference follows the rule for what is not finite (kernels/cuda/ops.h, RopeAndStoreKv): a key
// or a query that is NaN is seen, whatever stands beside it, and a key that nobody sees is not.
#include "kernels/cuda/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/half.h"
#include "model/random_matrix.h"

namespace pagoda::kernels::cuda::reference {
namespace {

constexpr std::size_t kDim = 16;
constexpr std::size_t kKeys = 400;  // more than a split

struct Scene {
  std::vector<float> q = std::vector<float>(kDim);
  std::vector<float> keys = std::vector<float>(kKeys * kDim);
  std::vector<float> values = std::vector<float>(kKeys * kDim);

  Scene() {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = model::uniform(1, i, 2.0f);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = model::uniform(2, i, 1.0f);
      values[i] = model::uniform(3, i, 1.0f);
    }
  }
  // As RopeAndStoreKv leaves it.
  void fill_nan(std::size_t key) {
    std::fill_n(keys.begin() + static_cast<std::ptrdiff_t>(key * kDim), kDim, NAN);
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(key * kDim), kDim, 0.0f);
  }
  std::vector<float> attend(std::uint64_t first, std::uint64_t position) const {
    return reference::attention({.q = q.data(), .dim = kDim, .first = first, .position = position},
                                keys.data(), values.data());
  }
};

TEST(Reference, AKeyThatIsNotFiniteIsSeenByWhoSeesItAlone) {
  for (const std::size_t bad : {0, 63, 64, 255, 256, 399}) {
    const Scene whole;
    Scene nonfinite;
    nonfinite.fill_nan(bad);
    for (const float value : nonfinite.attend(0, kKeys - 1)) ASSERT_TRUE(std::isnan(value)) << bad;
    if (bad > 0) {
      EXPECT_EQ(nonfinite.attend(0, bad - 1), whole.attend(0, bad - 1)) << bad;
    }
    if (bad + 1 < kKeys) {
      EXPECT_EQ(nonfinite.attend(bad + 1, kKeys - 1), whole.attend(bad + 1, kKeys - 1)) << bad;
    }
  }
}

TEST(Reference, AQueryThatIsNotFiniteGetsNothing) {
  Scene scene;
  scene.q.assign(kDim, NAN);
  for (const float value : scene.attend(0, kKeys - 1)) ASSERT_TRUE(std::isnan(value));
}

// The reference of attention is a softmax: splits, tiles and their merges change it by rounding
// alone.
TEST(Reference, AttentionIsASoftmaxOverTheVisibleKeys) {
  const std::size_t dim = 64;
  const std::uint64_t position = 700;
  std::vector<float> keys((position + 1) * dim);
  std::vector<float> values(keys.size());
  std::vector<float> q(dim);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = float_from_bf16(bf16_from_float(model::uniform(1, i, 2.0f)));
    values[i] = float_from_bf16(bf16_from_float(model::uniform(2, i, 1.0f)));
  }
  for (std::size_t i = 0; i < dim; ++i)
    q[i] = float_from_bf16(bf16_from_float(model::uniform(3, i, 2.0f)));
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
    const std::vector<float> got = attention(
        {.q = q.data(), .dim = dim, .scale = 0.125f, .first = first, .position = position},
        keys.data(), values.data());
    for (std::size_t d = 0; d < dim; ++d) ASSERT_NEAR(got[d], expected[d] / sum, 0x1p-8) << d;
  }
}

}  // namespace
}  // namespace pagoda::kernels::cuda::reference
