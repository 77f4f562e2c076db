// Norm, activation, rotation and the writing of keys and values.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/random_values.h"
#include "kernels/select.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels {
namespace {

const std::vector<std::size_t> kWidths = {1, 5, 8, 13, 64, 576, 1001};

TEST(RmsNorm, TheReferenceFollowsTheFormula) {
  for (const std::size_t width : kWidths) {
    const std::vector<float> x = random_values(width, 1);
    const std::vector<float> weight = random_values(width, 2);
    std::vector<float> y(width);
    ref_set().rms_norm(x.data(), weight.data(), 1e-5f, width, y.data());
    double squares = 0;
    for (const float value : x) squares += double{value} * value;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + double{1e-5f});
    for (std::size_t i = 0; i < width; ++i) {
      ASSERT_NEAR(y[i], x[i] * factor * weight[i],
                  std::abs(x[i] * factor * weight[i]) * 1e-5 + 1e-44);
    }
  }
}

TEST(RmsNorm, EverySetGivesTheReferenceBits) {
  for (const std::size_t width : kWidths) {
    const std::vector<float> x = random_values(width, 1);
    const std::vector<float> weight = random_values(width, 2);
    std::vector<float> expected(width);
    ref_set().rms_norm(x.data(), weight.data(), 1e-5f, width, expected.data());
    for (const KernelSet* const set : available_sets()) {
      std::vector<float> y(width);
      set->rms_norm(x.data(), weight.data(), 1e-5f, width, y.data());
      ASSERT_TRUE(same_bits(y, expected)) << set->name << " width " << width;
    }
  }
}

TEST(Swiglu, TheReferenceFollowsTheFormulaAlsoAtTheExtremes) {
  std::vector<float> gate = {-200, -88, -30, -1, -0.0f, 0, 1, 30, 88, 200};
  const std::vector<float> before = gate;
  const std::vector<float> up(gate.size(), 1.5f);
  ref_set().swiglu(gate.data(), up.data(), gate.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double exact = before[i] / (1 + std::exp(-double{before[i]})) * 1.5;
    ASSERT_NEAR(gate[i], exact, std::abs(exact) * 1e-6 + 1e-30) << before[i];
  }
}

TEST(Swiglu, EverySetGivesTheReferenceBits) {
  for (const std::size_t width : kWidths) {
    std::vector<float> gate = random_values(width, 3);
    for (float& value : gate) value *= 20;
    const std::vector<float> up = random_values(width, 4);
    std::vector<float> expected = gate;
    ref_set().swiglu(expected.data(), up.data(), width);
    for (const KernelSet* const set : available_sets()) {
      std::vector<float> y = gate;
      set->swiglu(y.data(), up.data(), width);
      ASSERT_TRUE(same_bits(y, expected)) << set->name << " width " << width;
    }
  }
}

TEST(Rope, RotatesThePairsItIsToldToAndLeavesTheRest) {
  const std::vector<float> cosines = {0.0f, 0.5f};
  const std::vector<float> sines = {1.0f, 0.25f};
  for (const KernelSet* const set : available_sets()) {
    std::vector<float> adjacent = {1, 2, 3, 4, 5};
    set->rope(adjacent.data(), {cosines.data(), sines.data(), 2, RopePairing::kAdjacent});
    // (1, 2) by 90 degrees is (-2, 1); (3, 4) is (3 / 2 - 4 / 4, 3 / 4 + 4 / 2).
    EXPECT_EQ(adjacent, (std::vector<float>{-2, 1, 0.5f, 2.75f, 5})) << set->name;
    std::vector<float> halves = {1, 3, 2, 4, 5};
    set->rope(halves.data(), {cosines.data(), sines.data(), 2, RopePairing::kHalfSplit});
    EXPECT_EQ(halves, (std::vector<float>{-2, 0.5f, 1, 2.75f, 5})) << set->name;
  }
}

std::vector<kv::memory::PageLayout> layouts_of_three_tokens() {
  using kv::memory::Element;
  using kv::memory::ValueOrder;
  std::vector<kv::memory::PageLayout> layouts;
  for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
    for (const ValueOrder order : {ValueOrder::kRows, ValueOrder::kTokenPairs}) {
      layouts.push_back({.element = element,
                         .block_tokens = 3,
                         .layers = 2,
                         .kv_heads = 2,
                         .key_dim = 13,
                         .value_dim = 9,
                         .value_order = order});
    }
  }
  return layouts;
}

TEST(StoreKv, WritesTheRowsOfOnePositionRoundedAndNothingElse) {
  const std::vector<float> keys = random_values(2 * 13, 6);
  const std::vector<float> values = random_values(2 * 9, 7);
  const std::vector<kv::BlockId> table = {kv::BlockId(2), kv::BlockId(0)};
  for (const kv::memory::PageLayout& layout : layouts_of_three_tokens()) {
    for (std::uint32_t token = 0; token < 3; ++token) {
      std::vector<std::byte> expected(3 * layout.page_bytes(), std::byte{0xEE});
      for (std::uint32_t head = 0; head < 2; ++head) {
        kv::memory::encode_row(layout.element, keys.data() + head * 13, 13,
                               layout.key_row(expected.data(), 1, head, token));
        kv::memory::encode_row(layout.element, values.data() + head * 9, 9,
                               layout.value_row(expected.data(), 1, head, token));
      }
      for (const KernelSet* const set : available_sets()) {
        std::vector<std::byte> pages(expected.size(), std::byte{0xEE});
        set->store_kv({{pages.data(), layout, 1}, table.data()}, 3 + token, keys.data(),
                      values.data());
        ASSERT_EQ(pages, expected) << set->name << " " << kv::memory::format_name(layout);
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
