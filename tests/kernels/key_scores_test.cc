// The attention that KV policies observe: that of a plain softmax in double precision, the same
// integers by every set of a numerics and for every order of pages.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/large_array.h"
#include "kernels/random_values.h"
#include "kernels/select.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels {
namespace {

using kv::memory::Element;
using kv::memory::KeyOrder;

struct ObservedCase {
  Element element;
  std::uint32_t heads = 6;
  std::uint32_t kv_heads = 2;
  std::uint32_t key_dim = 64;
  std::uint32_t rows = 3;
  std::uint64_t first_position = 70;
  float cap = 0;
  bool has_sink = false;
};

// Pages of keys that are read backwards from the pool, and queries.
class ObservedScene {
 public:
  ObservedScene(const ObservedCase& c, KeyOrder order)
      : c_(c),
        layout_{.elements = c.element,
                .block_tokens = 16,
                .layers = 1,
                .kv_heads = c.kv_heads,
                .key_dim = c.key_dim,
                .value_dim = 32,
                .key_order = order},
        queries_(random_values(std::size_t{c.rows} * c.heads * c.key_dim, 5)) {
    const auto blocks = static_cast<std::uint32_t>(keys() / layout_.block_tokens + 1);
    for (std::uint32_t b = 0; b < blocks; ++b) table_.push_back(kv::BlockId(blocks - 1 - b));
    pages_.assign(blocks * layout_.page_bytes(), std::byte{0xFF});
    for (std::uint64_t t = 0; t < keys(); ++t) {
      const auto key = random_values(std::size_t{c.kv_heads} * c.key_dim, 100 + 2 * t);
      const auto value = random_values(std::size_t{c.kv_heads} * layout_.value_dim, 101 + 2 * t);
      ref_set().store_kv(view(), t, key.data(), value.data());
    }
  }

  std::uint64_t keys() const { return c_.first_position + c_.rows; }
  kv::memory::SequenceView view() { return {{pages_.data(), layout_, 0}, table_.data()}; }
  Attention job() const {
    return {.heads = c_.heads,
            .scale = 3.0f / std::sqrt(static_cast<float>(c_.key_dim)),
            .cap = c_.cap};
  }

  std::vector<std::uint64_t> observe(const KernelSet& set, std::uint32_t kv_head) {
    const std::uint32_t group = c_.heads / c_.kv_heads;
    const std::size_t splits = keys() / set.attention_split + 1;
    const std::size_t stride = splits * set.attention_split;
    LargeArray<std::byte> scratch(set.attention_scratch(c_.key_dim, layout_.value_dim));
    std::vector<float> scores(c_.rows * group * stride);
    std::vector<std::uint32_t> weights(stride);
    std::vector<std::uint64_t> sums(keys(), 0);
    for (std::uint64_t split = 0; split * set.attention_split < keys(); ++split) {
      set.score_split(job(), rows(), kv_head, split, scratch.data(), {scores.data(), stride});
    }
    for (std::uint32_t row = 0; row < c_.rows; ++row) {
      for (std::uint32_t g = 0; g < group; ++g) {
        observe_weights(set, c_.first_position + row + 1, c_.has_sink ? &kSink : nullptr,
                        scores.data() + (row * group + g) * stride, weights.data(), sums.data());
      }
    }
    return sums;
  }

  // By the definition of attention.
  std::vector<double> expected(std::uint32_t kv_head) {
    const std::uint32_t group = c_.heads / c_.kv_heads;
    std::vector<double> sums(keys(), 0);
    std::vector<float> key(c_.key_dim);
    for (std::uint32_t row = 0; row < c_.rows; ++row) {
      for (std::uint32_t g = 0; g < group; ++g) {
        const float* const query =
            queries_.data() + (row * c_.heads + kv_head * group + g) * c_.key_dim;
        std::vector<double> weights;
        double sum = c_.has_sink ? std::exp(double{kSink}) : 0;
        for (std::uint64_t t = 0; t <= c_.first_position + row; ++t) {
          kv::memory::decode_row(c_.element, view().key_row(kv_head, t), c_.key_dim, key.data());
          double score = 0;
          for (std::uint32_t d = 0; d < c_.key_dim; ++d) score += double{query[d]} * key[d];
          score *= job().scale;
          if (c_.cap > 0) score = c_.cap * std::tanh(score / c_.cap);
          weights.push_back(std::exp(score));
          sum += weights.back();
        }
        for (std::size_t t = 0; t < weights.size(); ++t) sums[t] += weights[t] / sum;
      }
    }
    return sums;
  }

 private:
  static constexpr float kSink = 0.75f;

  AttentionRows rows() {
    return {
        .view = view(), .q = queries_.data(), .first_position = c_.first_position, .rows = c_.rows};
  }

  ObservedCase c_;
  kv::memory::PageLayout layout_;
  std::vector<float> queries_;
  std::vector<kv::BlockId> table_;
  std::vector<std::byte> pages_;
};

TEST(ObservedKeys, GetTheWeightsOfAPlainSoftmaxInEverySet) {
  std::vector<ObservedCase> cases;
  for (const Element element : {Element::kF32, Element::kF16, Element::kBF16, Element::kE4M3,
                                Element::kE5M2, Element::kInt8, Element::kInt4}) {
    cases.push_back({.element = element});
  }
  cases.push_back({.element = Element::kBF16, .cap = 5});
  cases.push_back({.element = Element::kBF16, .has_sink = true});
  cases.push_back({.element = Element::kF16, .heads = 16, .kv_heads = 1, .key_dim = 576});
  cases.push_back({.element = Element::kBF16, .key_dim = 36, .rows = 1, .first_position = 0});
  cases.push_back({.element = Element::kF32, .rows = 20, .first_position = 0});
  // More keys than a split, and more queries than kernels take at once.
  cases.push_back({.element = Element::kBF16, .rows = 12, .first_position = 505});
  cases.push_back({.element = Element::kInt8, .rows = 12, .first_position = 505});
  for (const ObservedCase& c : cases) {
    for (std::uint32_t kv_head = 0; kv_head < c.kv_heads; ++kv_head) {
      ObservedScene scene(c, KeyOrder::kRows);
      const std::vector<double> expected = scene.expected(kv_head);
      for (const Numerics numerics : {Numerics::kFp32, Numerics::kInt8Bf16}) {
        // bf16 has 8 bits, and scores are 10 at most.
        const double near = numerics == Numerics::kFp32 ? 2e-5 : 0.04;
        const KernelSet& reference = ref_set(numerics);
        const std::vector<std::uint64_t> sums = scene.observe(reference, kv_head);
        for (std::size_t t = 0; t < sums.size(); ++t) {
          ASSERT_NEAR(static_cast<double>(sums[t]) / kAttentionUnit, expected[t], near)
              << "element " << static_cast<int>(c.element) << " token " << t;
        }
        const bool has_columns =
            unit_count(c.element, c.key_dim) % kv::memory::run_units(c.element) == 0;
        ObservedScene turned(c, has_columns ? KeyOrder::kColumns : KeyOrder::kRows);
        for (const KernelSet* const set : available_sets()) {
          if (set->numerics != numerics) continue;
          EXPECT_EQ(scene.observe(*set, kv_head), sums) << set->name;
          EXPECT_EQ(turned.observe(*set, kv_head), sums) << set->name << ", keys in columns";
        }
      }
    }
  }
}

TEST(ObservedKeys, AddNothingWhereAScoreIsNoNumber) {
  const KernelSet& set = ref_set();
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> scores = {1, bad, 2, 0};
    std::vector<std::uint32_t> weights(4);
    std::vector<std::uint64_t> sums = {7, 8, 9};
    observe_weights(set, 3, nullptr, scores.data(), weights.data(), sums.data());
    EXPECT_EQ(sums, (std::vector<std::uint64_t>{7, 8, 9}));
  }
}

}  // namespace
}  // namespace pagoda::kernels
