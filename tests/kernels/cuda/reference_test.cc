// The reference follows the rule for what is not finite (kernels/cuda/ops.h, RopeAndStoreKv): a key
// or a query that is NaN is seen, whatever stands beside it, and a key that nobody sees is not.
#include "kernels/cuda/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/half.h"
#include "kernels/select.h"
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

// A sink is a score of its own without a value: the softmax with one key more.
TEST(Reference, ASinkTakesItsShareOfTheWeights) {
  const Scene scene;
  for (const float sink : {-4.0f, 0.5f, 9.0f}) {
    const std::vector<float> got = reference::attention(
        {.q = scene.q.data(), .dim = kDim, .scale = 0.3f, .position = kKeys - 1, .sink = sink},
        scene.keys.data(), scene.values.data());
    double sum = std::exp(double{sink});
    std::vector<double> expected(kDim);
    for (std::size_t key = 0; key < kKeys; ++key) {
      double score = 0;
      for (std::size_t d = 0; d < kDim; ++d) {
        score += double{scene.q[d]} * double{scene.keys[key * kDim + d]};
      }
      const double weight = std::exp(0.3 * score);
      sum += weight;
      for (std::size_t d = 0; d < kDim; ++d) {
        expected[d] += weight * double{scene.values[key * kDim + d]};
      }
    }
    for (std::size_t d = 0; d < kDim; ++d) ASSERT_NEAR(got[d], expected[d] / sum, 2e-3) << sink;
  }
}

// Sinks behind a gap are keys of the same softmax, to a query of their own.
TEST(Reference, SinkTokensBehindAGapAreSeenByTheirOwnQuery) {
  const Scene scene;
  std::vector<float> at_sinks = scene.q;
  for (float& value : at_sinks) value *= -0.5f;
  constexpr std::size_t kSinks = 5;
  constexpr std::size_t kFirst = kKeys - 40;
  const std::vector<float> got = reference::attention({.q = scene.q.data(),
                                                       .dim = kDim,
                                                       .scale = 0.3f,
                                                       .first = kFirst,
                                                       .position = kKeys - 1,
                                                       .sink_q = at_sinks.data(),
                                                       .sinks = kSinks},
                                                      scene.keys.data(), scene.values.data());
  double sum = 0;
  std::vector<double> expected(kDim);
  for (std::size_t key = 0; key < kKeys; ++key) {
    if (key >= kSinks && key < kFirst) continue;
    const std::vector<float>& q = key < kSinks ? at_sinks : scene.q;
    double score = 0;
    for (std::size_t d = 0; d < kDim; ++d)
      score += double{q[d]} * double{scene.keys[key * kDim + d]};
    const double weight = std::exp(0.3 * score);
    sum += weight;
    for (std::size_t d = 0; d < kDim; ++d) {
      expected[d] += weight * double{scene.values[key * kDim + d]};
    }
  }
  for (std::size_t d = 0; d < kDim; ++d) ASSERT_NEAR(got[d], expected[d] / sum, 4e-3) << d;
}

// The gates and the cap of the GPU are those of CPUs but for the exponential's rounding.
TEST(Reference, GatesAndCapsAreThoseOfCpus) {
  const KernelSet& cpu = ref_set();
  for (const float up : {-9.0f, -0.5f, 0.0f, 3.0f, 8.0f}) {
    for (float gate = -20.0f; gate <= 20.0f; gate += 0.37f) {
      const auto of_cpu = [&](auto function) {
        float value = gate;
        function(&value, &up, 1);
        return value;
      };
      const float bound = 1e-5f * (1.0f + std::abs(gate * up));
      ASSERT_NEAR(swiglu(gate, up), of_cpu(cpu.swiglu), bound) << gate << ", " << up;
      ASSERT_NEAR(geglu(gate, up), of_cpu(cpu.geglu), bound) << gate << ", " << up;
      ASSERT_NEAR(clamped_swiglu(gate, up), of_cpu(cpu.clamped_swiglu), bound)
          << gate << ", " << up;
      ASSERT_NEAR(soft_cap(gate, 0.7f, 5.0f), 5.0 * std::tanh(0.7 * double{gate} / 5.0), 1e-5);
    }
  }
  EXPECT_EQ(soft_cap(3e38f, 1.0f, 50.0f), 50.0f);
  EXPECT_EQ(soft_cap(-3e38f, 1.0f, 50.0f), -50.0f);
  EXPECT_TRUE(std::isnan(soft_cap(NAN, 1.0f, 50.0f)));
  EXPECT_TRUE(std::isnan(clamped_swiglu(NAN, 1.0f)));
  EXPECT_TRUE(std::isnan(clamped_swiglu(1.0f, NAN)));
}

}  // namespace
}  // namespace pagoda::kernels::cuda::reference
