// Norm, activation, rotation and the writing of keys and values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "base/half.h"
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

// The ways to join gates and ups: a set's function, and what it computes with an up of 1.5.
struct Gate {
  const char* name;
  void (*KernelSet::*join)(float* gate, const float* up, std::size_t count);
  double (*exact)(double gate);
};
constexpr Gate kGates[] = {
    {"swiglu", &KernelSet::swiglu, [](double g) { return g / (1 + std::exp(-g)) * 1.5; }},
    {"geglu", &KernelSet::geglu,
     [](double g) {
       const double inner = std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g);
       return g / 2 * (1 + std::tanh(inner)) * 1.5;
     }},
    {"clamped_swiglu", &KernelSet::clamped_swiglu, [](double g) {
       g = std::min(g, 7.0);
       return g / (1 + std::exp(-1.702 * g)) * (1.5 + 1);
     }}};

TEST(Gates, TheReferenceFollowsTheFormulaAlsoAtTheExtremes) {
  const std::vector<float> before = {-1e20f, -200, -88, -30, -5, -1,  -0.0f,
                                     0,      1,    5,   30,  88, 200, 1e20f};
  const std::vector<float> up(before.size(), 1.5f);
  for (const Gate& kind : kGates) {
    std::vector<float> gate = before;
    (ref_set().*kind.join)(gate.data(), up.data(), gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double exact = kind.exact(before[i]);
      // tanh loses what is left of 1 + tanh far below zero, as the exponential does not.
      ASSERT_NEAR(gate[i], exact, std::abs(exact) * 2e-6 + 1e-12) << kind.name << before[i];
    }
  }
}

TEST(Gates, EverySetGivesTheReferenceBits) {
  for (const std::size_t width : kWidths) {
    std::vector<float> gate = random_values(width, 3);
    for (std::size_t i = 0; i < width; ++i) gate[i] *= i % 3 == 0 ? 100.0f : 4.0f;
    const std::vector<float> up = random_values(width, 4);
    for (const Gate& kind : kGates) {
      std::vector<float> expected = gate;
      (ref_set().*kind.join)(expected.data(), up.data(), width);
      for (const KernelSet* const set : available_sets()) {
        std::vector<float> y = gate;
        (set->*kind.join)(y.data(), up.data(), width);
        ASSERT_TRUE(same_bits(y, expected)) << kind.name << ", " << set->name << " width " << width;
      }
    }
  }
}

TEST(Gates, ClampedUpsStayWithinSevenAndNaNStaysNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::size_t count = 37;  // more than a vector, and a rest
  for (const KernelSet* const set : available_sets()) {
    for (const auto& [up, factor] : {std::pair{100.0f, 8.0f}, {-100.0f, -6.0f}, {7.5f, 8.0f}}) {
      std::vector<float> gate(count, 7.0f);
      set->clamped_swiglu(gate.data(), std::vector<float>(count, up).data(), count);
      const double exact = 7.0 / (1 + std::exp(-1.702 * 7)) * double{factor};
      for (const float value : gate) ASSERT_NEAR(value, exact, 1e-5) << set->name << up;
    }
    std::vector<float> gate(count, nan);
    set->clamped_swiglu(gate.data(), std::vector<float>(count, 1.0f).data(), count);
    for (const float value : gate) ASSERT_TRUE(std::isnan(value)) << set->name;
    gate.assign(count, 1.0f);
    set->clamped_swiglu(gate.data(), std::vector<float>(count, nan).data(), count);
    for (const float value : gate) ASSERT_TRUE(std::isnan(value)) << set->name;
  }
}

TEST(SoftCap, FollowsTheFormulaWithTheSameBitsInEverySet) {
  for (const std::size_t width : kWidths) {
    std::vector<float> x = random_values(width, 10);
    for (std::size_t i = 0; i < width; ++i) x[i] *= i % 5 == 0 ? 3e4f : 30.0f;
    std::vector<float> expected = x;
    ref_set().soft_cap(expected.data(), width, 0.25f, 30.0f);
    for (std::size_t i = 0; i < width; ++i) {
      ASSERT_NEAR(expected[i], 30 * std::tanh(0.25 * x[i] / 30), 1e-5) << x[i];
    }
    for (const KernelSet* const set : available_sets()) {
      std::vector<float> y = x;
      set->soft_cap(y.data(), width, 0.25f, 30.0f);
      ASSERT_TRUE(same_bits(y, expected)) << set->name << " width " << width;
    }
  }
}

TEST(Activations, ACopiedRowIsTheRowThatWouldHaveBeenPackedThere) {
  for (const std::size_t columns : {5, 32, 64, 96, 200}) {
    const std::vector<float> x = random_values(columns, 9);
    for (const KernelSet* const set : available_sets()) {
      const auto empty = [&] {
        return std::vector<std::byte>(activation_bytes(set->numerics, columns, 40));
      };
      std::vector<std::byte> from = empty();
      std::vector<std::byte> packed = empty();
      std::vector<std::byte> copied = empty();
      set->pack_activations(x.data(), columns, from.data(), 3);
      set->pack_activations(x.data(), columns, packed.data(), 33);
      copy_activations(set->numerics, columns, from.data(), 3, copied.data(), 33);
      ASSERT_EQ(copied, packed) << set->name << ", " << columns << " columns";
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

TEST(Rope, EverySetGivesTheReferenceBits) {
  for (const std::size_t pairs : {1, 15, 16, 32, 48, 64}) {
    const std::vector<float> head = random_values(2 * pairs + 3, 6);
    const std::vector<float> cosines = random_values(pairs, 7);
    const std::vector<float> sines = random_values(pairs, 8);
    for (const RopePairing pairing : {RopePairing::kAdjacent, RopePairing::kHalfSplit}) {
      const RopeRow row = {cosines.data(), sines.data(), pairs, pairing};
      std::vector<float> expected = head;
      ref_set().rope(expected.data(), row);
      for (const KernelSet* const set : available_sets()) {
        std::vector<float> y = head;
        set->rope(y.data(), row);
        ASSERT_TRUE(same_bits(y, expected)) << set->name << " pairs " << pairs;
      }
    }
  }
}

constexpr std::uint32_t kKeyDim = 14;
constexpr std::uint32_t kValueDim = 9;

std::vector<kv::memory::PageLayout> layouts_of_three_tokens() {
  using kv::memory::Element;
  using kv::memory::KeyOrder;
  using kv::memory::ValueOrder;
  std::vector<kv::memory::PageLayout> layouts;
  for (const Element element : {Element::kF32, Element::kF16, Element::kBF16}) {
    for (const ValueOrder order : {ValueOrder::kRows, ValueOrder::kTokenGroups}) {
      for (const KeyOrder key_order : {KeyOrder::kRows, KeyOrder::kColumns}) {
        layouts.push_back({.elements = element,
                           .block_tokens = 3,
                           .layers = 2,
                           .kv_heads = 2,
                           .key_dim = kKeyDim,
                           .value_dim = kValueDim,
                           .value_order = order,
                           .key_order = key_order});
      }
    }
  }
  return layouts;
}

using Bytes = std::vector<std::byte>;

// Three pages of a byte no test writes, the rows of `token` in page 0 and layer 1 encoded.
Bytes pages_with(const kv::memory::PageLayout& layout, std::uint32_t token,
                 const std::vector<float>& keys, const std::vector<float>& values) {
  Bytes pages(3 * layout.page_bytes(), std::byte{0xEE});
  for (std::uint32_t head = 0; head < 2; ++head) {
    kv::memory::encode_row(layout.elements.keys, keys.data() + head * kKeyDim, kKeyDim,
                           layout.key_row(pages.data(), 1, head, token));
    kv::memory::encode_row(layout.elements.keys, values.data() + head * kValueDim, kValueDim,
                           layout.value_row(pages.data(), 1, head, token));
  }
  return pages;
}

Bytes pages_stored(const KernelSet& set, const kv::memory::PageLayout& layout, std::uint32_t token,
                   const std::vector<float>& keys, const std::vector<float>& values,
                   bool finite = true) {
  const std::vector<kv::BlockId> table = {kv::BlockId(2), kv::BlockId(0)};
  Bytes pages(3 * layout.page_bytes(), std::byte{0xEE});
  EXPECT_EQ(set.store_kv({{pages.data(), layout, 1}, table.data()}, 3 + token, keys.data(),
                         values.data()),
            finite);
  return pages;
}

TEST(StoreKv, WritesTheRowsOfOnePositionRoundedAndNothingElse) {
  const std::vector<float> keys = random_values(2 * kKeyDim, 6);
  const std::vector<float> values = random_values(2 * kValueDim, 7);
  for (const kv::memory::PageLayout& layout : layouts_of_three_tokens()) {
    for (std::uint32_t token = 0; token < 3; ++token) {
      const Bytes expected = pages_with(layout, token, keys, values);
      for (const KernelSet* const set : available_sets()) {
        ASSERT_EQ(pages_stored(*set, layout, token, keys, values), expected)
            << set->name << " " << kv::memory::format_name(layout);
      }
    }
  }
}

// Rows of bytes: no byte has two tokens, so that a row of one leaves those of others.
TEST(StoreKv, WritesRowsOfEightBitFloatsAndIntegersAsTheCodecDoes) {
  using kv::memory::Element;
  constexpr std::uint32_t kDim = 96;
  const std::vector<float> keys = random_values(2 * kDim, 6);
  const std::vector<float> values = random_values(2 * kDim, 7);
  for (kv::memory::PageLayout layout : layouts_of_three_tokens()) {
    for (const Element element : {Element::kE4M3, Element::kE5M2, Element::kInt8, Element::kInt4}) {
      for (const std::uint32_t block : {3u, 6u, 16u}) {
        layout.elements = element;
        layout.block_tokens = block;
        layout.key_dim = layout.value_dim = kDim;
        for (std::uint32_t token = 0; token < block; ++token) {
          Bytes expected(3 * layout.page_bytes(), std::byte{0xEE});
          for (std::uint32_t head = 0; head < 2; ++head) {
            kv::memory::encode_row(element, keys.data() + head * kDim, kDim,
                                   layout.key_row(expected.data(), 1, head, token));
            kv::memory::encode_row(element, values.data() + head * kDim, kDim,
                                   layout.value_row(expected.data(), 1, head, token));
          }
          const std::vector<kv::BlockId> table = {kv::BlockId(2), kv::BlockId(0)};
          for (const KernelSet* const set : available_sets()) {
            Bytes pages(3 * layout.page_bytes(), std::byte{0xEE});
            ASSERT_TRUE(set->store_kv({{pages.data(), layout, 1}, table.data()}, block + token,
                                      keys.data(), values.data()));
            ASSERT_EQ(pages, expected) << set->name << " " << kv::memory::format_name(layout);
          }
        }
      }
    }
  }
}

// A latent is one row with one scale, also where its largest number is behind its value.
TEST(StoreKv, ALatentIsStoredOnceAsTheCodecDoes) {
  using kv::memory::Element;
  for (const Element element : {Element::kE4M3, Element::kInt8, Element::kInt4}) {
    const kv::memory::PageLayout layout = {.elements = element,
                                           .block_tokens = 4,
                                           .layers = 1,
                                           .kv_heads = 1,
                                           .key_dim = 96,
                                           .value_dim = 64,
                                           .values_in_keys = true};
    std::vector<float> latent = random_values(96, 5);
    latent[80] = 400.0f;
    Bytes expected(layout.page_bytes(), std::byte{0xEE});
    kv::memory::encode_row(element, latent.data(), 96, layout.key_row(expected.data(), 0, 0, 1));
    const std::vector<kv::BlockId> table = {kv::BlockId(0)};
    for (const KernelSet* const set : available_sets()) {
      Bytes page(layout.page_bytes(), std::byte{0xEE});
      set->store_kv({{page.data(), layout, 0}, table.data()}, 1, latent.data(), latent.data());
      ASSERT_EQ(page, expected) << set->name << " " << kv::memory::format_name(layout);
    }
  }
}

// Rows of whole vectors: both tokens of a pair of values, and what a set did not write stays.
TEST(StoreKv, EverySetWritesTheReferenceBytes) {
  const std::vector<float> keys = random_values(2 * 64, 8);
  const std::vector<float> values = random_values(2 * 48, 9);
  const std::vector<kv::BlockId> table = {kv::BlockId(1), kv::BlockId(0)};
  for (kv::memory::PageLayout layout : layouts_of_three_tokens()) {
    layout.block_tokens = 16;
    layout.key_dim = 64;
    layout.value_dim = 48;
    for (const KernelSet* const set : available_sets()) {
      Bytes written(2 * layout.page_bytes(), std::byte{0xEE});
      Bytes expected = written;
      for (const std::uint64_t position : {4, 17, 31}) {
        set->store_kv({{written.data(), layout, 1}, table.data()}, position, keys.data(),
                      values.data());
        ref_set(set->numerics)
            .store_kv({{expected.data(), layout, 1}, table.data()}, position, keys.data(),
                      values.data());
      }
      ASSERT_EQ(written, expected) << set->name << " " << kv::memory::format_name(layout);
    }
  }
}

TEST(StoreKv, Int8Bf16KeepsNoSubnormals) {
  std::vector<float> keys(2 * kKeyDim, 1.0f);
  std::vector<float> values(2 * kValueDim, 2.0f);
  std::vector<float> expected_keys = keys;
  std::vector<float> expected_values = values;
  keys[3] = -1e-39f;
  expected_keys[3] = -0.0f;
  values[2] = 1.1754942e-38f;  // rounds to the smallest normal bf16 when it is not zero before
  expected_values[2] = 0.0f;
  for (const kv::memory::PageLayout& layout : layouts_of_three_tokens()) {
    const Bytes expected = pages_with(layout, 1, expected_keys, expected_values);
    for (const KernelSet* const set : available_sets()) {
      if (set->numerics != Numerics::kInt8Bf16) continue;
      ASSERT_EQ(pages_stored(*set, layout, 1, keys, values), expected)
          << set->name << " " << kv::memory::format_name(layout);
    }
  }
}

// A key of minus infinity would hide its token, and 0 * infinity would be NaN for those who do not
// see it. What is just not too large stays.
TEST(StoreKv, AHeadWithAKeyOrValueThatIsNotFiniteGetsANaNKeyAndNoValues) {
  const std::vector<float> keys(2 * kKeyDim, 1.0f);
  const std::vector<float> values(2 * kValueDim, 2.0f);
  for (const kv::memory::PageLayout& layout : layouts_of_three_tokens()) {
    for (const KernelSet* const set : available_sets()) {
      const float limit = first_infinite(set->numerics, layout.elements.keys);
      const float largest = std::nextafter(limit, 0.0f);
      for (const float bad : {HUGE_VALF, -HUGE_VALF, NAN, limit, -limit, largest, -largest}) {
        for (const bool in_keys : {true, false}) {
          std::vector<float> own_keys = keys;
          std::vector<float> own_values = values;
          (in_keys ? own_keys[kKeyDim + 7] : own_values[kValueDim + 4]) = bad;  // head 1
          std::vector<float> expected_keys = own_keys;
          std::vector<float> expected_values = own_values;
          const bool finite = std::fabs(bad) == largest;
          if (!finite) {
            std::fill(expected_keys.begin() + kKeyDim, expected_keys.end(), NAN);
            std::fill(expected_values.begin() + kValueDim, expected_values.end(), 0.0f);
          }
          const Bytes expected = pages_with(layout, 2, expected_keys, expected_values);
          ASSERT_EQ(pages_stored(*set, layout, 2, own_keys, own_values, finite), expected)
              << set->name << " " << kv::memory::format_name(layout) << " " << bad
              << (in_keys ? " in keys" : " in values");
        }
      }
    }
  }
}

// By the definitions of the formats: what rounds to a number, and what does not.
TEST(StoreKv, TheFirstThatIsNotFiniteRoundsToInfinityAndTheOneBeforeDoesNot) {
  using kv::memory::Element;
  const float infinity = HUGE_VALF;
  EXPECT_EQ(first_infinite(Numerics::kFp32, Element::kF32), infinity);
  for (const Numerics numerics : {Numerics::kFp32, Numerics::kInt8Bf16}) {
    const float half = first_infinite(numerics, Element::kF16);
    EXPECT_EQ(float_from_fp16(fp16_from_float(half)), infinity);
    EXPECT_EQ(float_from_fp16(fp16_from_float(std::nextafter(half, 0.0f))), 65504.0f);
    const float overflows = first_infinite(numerics, Element::kBF16);
    EXPECT_EQ(float_from_bf16(bf16_from_float(overflows)), infinity);
    EXPECT_TRUE(std::isfinite(float_from_bf16(bf16_from_float(std::nextafter(overflows, 0.0f)))));
    EXPECT_EQ(std::nextafter(first_infinite(numerics, Element::kE4M3), 0.0f), 448.0f * 128);
  }
  EXPECT_EQ(first_infinite(Numerics::kInt8Bf16, Element::kF32),
            first_infinite(Numerics::kInt8Bf16, Element::kBF16));
}

}  // namespace
}  // namespace pagoda::kernels
