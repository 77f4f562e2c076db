// Attention through block tables: right against a plain softmax in double precision, the same bits
// in every set, blind to everything but the visible rows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/large_array.h"
#include "kernels/random_values.h"
#include "kernels/select.h"
#include "kv/memory/codec.h"

namespace pagoda::kernels {
namespace {

using kv::memory::Element;
using kv::memory::Elements;
using kv::memory::KeyOrder;
using kv::memory::ValueOrder;

struct Case {
  Elements elements;
  std::uint32_t block_tokens;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t key_dim;
  std::uint32_t value_dim;
  std::uint32_t window;
  std::uint64_t position;
  float cap = 0;
  bool latent = false;     // values are the beginnings of keys
  std::uint32_t keys = 0;  // as in Attention
};

bool has_columns(const Case& c) {
  return unit_count(c.elements.keys, c.key_dim) % run_units(c.elements.keys) == 0;
}

// One layer's pages holding random rows for every position up to the query's, scattered over the
// pool backwards; every other byte is NaN.
class Scene {
 public:
  explicit Scene(const Case& c, ValueOrder order = ValueOrder::kRows,
                 KeyOrder key_order = KeyOrder::kRows)
      : c_(c),
        layout_{.elements = c.elements,
                .block_tokens = c.block_tokens,
                .layers = 1,
                .kv_heads = c.kv_heads,
                .key_dim = c.key_dim,
                .value_dim = c.value_dim,
                .value_order = order,
                .key_order = has_columns(c) ? key_order : KeyOrder::kRows,
                .values_in_keys = c.latent},
        query_(random_values(std::size_t{c.heads} * c.key_dim, 11)) {
    const std::uint64_t tokens = c.position + 1;
    const auto blocks = static_cast<std::uint32_t>((tokens + c.block_tokens - 1) / c.block_tokens);
    for (std::uint32_t b = 0; b < blocks; ++b) table_.push_back(kv::BlockId(2 * (blocks - 1 - b)));
    pages_.assign(2 * blocks * layout_.page_bytes(), std::byte{0xFF});
    for (std::uint64_t t = first_visible_key(c.position, c.window); t < tokens; ++t) {
      const auto keys = random_values(std::size_t{c.kv_heads} * c.key_dim, 1000 + 2 * t);
      const auto values = random_values(std::size_t{c.kv_heads} * c.value_dim, 1001 + 2 * t);
      ref_set().store_kv(view(), t, keys.data(), c.latent ? keys.data() : values.data());
    }
  }

  kv::memory::SequenceView view() { return {{pages_.data(), layout_, 0}, table_.data()}; }
  Attention job() const {
    return {.heads = c_.heads,
            .window = c_.window,
            .keys = c_.keys,
            .scale = 1.0f / std::sqrt(static_cast<float>(c_.key_dim)),
            .cap = c_.cap};
  }

  // Stores a token anew, with a number among its last head's keys or values that is given.
  void store_with(const KernelSet& set, std::uint64_t token, bool in_keys, float number) {
    auto keys = random_values(std::size_t{c_.kv_heads} * c_.key_dim, 1000 + 2 * token);
    auto values = random_values(std::size_t{c_.kv_heads} * c_.value_dim, 1001 + 2 * token);
    (in_keys ? keys : values).back() = number;
    set.store_kv(view(), token, keys.data(), c_.latent ? keys.data() : values.data());
  }

  // The query's token alone, or as the last of `rows` tokens that attend together: those before it
  // ask with queries of their own. Of a token that many before it.
  std::vector<float> attend(const KernelSet& set, std::uint32_t rows = 1,
                            std::uint32_t before = 0) {
    const std::size_t group = c_.heads / c_.kv_heads;
    const std::size_t row_floats = partial_floats(group, c_.value_dim);
    const std::size_t head_floats = std::size_t{c_.heads} * c_.key_dim;
    std::vector<float> queries = random_values((rows - 1) * head_floats, 12);
    queries.insert(queries.end(), query_.begin(), query_.end());
    std::vector<float> out(std::size_t{c_.heads} * c_.value_dim);
    LargeArray<std::byte> scratch(set.attention_scratch(c_.key_dim, c_.value_dim));
    std::vector<float> partials(rows * row_floats);
    const AttentionRows tile = {view(), queries.data(), c_.position - (rows - 1), rows};
    const SplitRange splits = visible_splits(job(), c_.position, set.attention_split);
    for (std::uint32_t head = 0; head < c_.kv_heads; ++head) {
      std::vector<float> total;
      for (std::uint64_t split = splits.first; split < splits.last; ++split) {
        set.attend_split(job(), tile, head, split, scratch.data(), partials.data());
        const float* const last = partials.data() + (rows - 1 - before) * row_floats;
        if (total.empty()) {
          total.assign(last, last + row_floats);
        } else {
          set.merge_partials(total.data(), last, group, c_.value_dim);
        }
      }
      set.normalise_partial(total.data(), group, c_.value_dim,
                            out.data() + head * group * c_.value_dim);
    }
    return out;
  }

  // softmax(q k^T / sqrt(d)) v in double precision over the rounded rows
  std::vector<double> exact() {
    std::vector<double> out(std::size_t{c_.heads} * c_.value_dim, 0.0);
    std::vector<float> row(std::max(c_.key_dim, c_.value_dim));
    const std::uint64_t first = first_visible_key(c_.position, c_.window);
    for (std::uint32_t head = 0; head < c_.heads; ++head) {
      const std::uint32_t kv_head = head / (c_.heads / c_.kv_heads);
      std::vector<double> scores;
      double best = -std::numeric_limits<double>::infinity();
      for (std::uint64_t t = first; t <= c_.position; ++t) {
        kv::memory::decode_row(c_.elements.keys, view().key_row(kv_head, t), c_.key_dim,
                               row.data());
        double dot = 0;
        for (std::uint32_t d = 0; d < c_.key_dim; ++d) {
          dot += double{query_[head * c_.key_dim + d]} * row[d];
        }
        scores.push_back(dot / std::sqrt(double{1} * c_.key_dim));
        if (c_.cap > 0) scores.back() = c_.cap * std::tanh(scores.back() / c_.cap);
        best = std::max(best, scores.back());
        largest_score_ = std::max(largest_score_, std::abs(scores.back()));
      }
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - best);
      for (std::uint64_t t = first; t <= c_.position; ++t) {
        kv::memory::decode_row(c_.elements.values, view().value_row(kv_head, t), c_.value_dim,
                               row.data());
        for (std::uint32_t d = 0; d < c_.value_dim; ++d) {
          out[head * c_.value_dim + d] += scores[t - first] / sum * row[d];
        }
      }
    }
    return out;
  }

  // Of those that exact() has seen.
  double largest_score() const { return largest_score_; }

 private:
  Case c_;
  kv::memory::PageLayout layout_;
  std::vector<float> query_;
  std::vector<kv::BlockId> table_;
  std::vector<std::byte> pages_;
  double largest_score_ = 0;
};

const std::vector<Case> kCases = {
    {Element::kF32, 16, 4, 4, 64, 64, 0, 0},
    {Element::kF16, 16, 9, 3, 64, 64, 0, 31},
    {Element::kBF16, 16, 9, 3, 64, 64, 0, 32},
    {Element::kF16, 1, 2, 1, 8, 8, 0, 100},
    {Element::kF32, 7, 6, 2, 13, 5, 0, 70},
    {Element::kF16, 128, 8, 1, 80, 24, 0, 600},
    {Element::kBF16, 5, 4, 2, 33, 17, 0, 511},
    {Element::kF32, 32, 4, 2, 16, 16, 0, 512},
    {Element::kF16, 16, 4, 2, 16, 16, 0, 1600},
    {Element::kF16, 16, 4, 2, 16, 16, 24, 20},
    {Element::kF32, 16, 4, 2, 16, 16, 24, 100},
    {Element::kBF16, 3, 4, 2, 16, 16, 1, 530},
    {Element::kF16, 16, 4, 2, 16, 16, 600, 1500},
    {Element::kF32, 64, 2, 2, 256, 256, 513, 1023},
    {Element::kF32, 16, 4, 2, 64, 64, 0, 300, 2},
    {Element::kBF16, 16, 8, 1, 40, 24, 90, 520, 1},
    // The head sizes of the models that are served.
    {Element::kF16, 16, 4, 2, 64, 64, 0, 530},
    {Element::kBF16, 16, 4, 1, 64, 64, 0, 530},
    {Element::kF16, 16, 4, 2, 80, 80, 0, 70},
    {Element::kBF16, 16, 4, 1, 80, 80, 0, 70},
    {Element::kF16, 16, 4, 2, 96, 96, 0, 90},
    {Element::kBF16, 16, 4, 1, 96, 96, 0, 90},
    {Element::kF16, 16, 4, 2, 112, 112, 0, 50},
    {Element::kBF16, 16, 4, 1, 112, 112, 0, 50},
    {Element::kF16, 16, 4, 2, 128, 128, 0, 530},
    {Element::kBF16, 16, 4, 1, 128, 128, 0, 530},
    {Element::kF16, 16, 4, 2, 192, 192, 0, 60},
    {Element::kBF16, 16, 4, 1, 192, 192, 0, 60},
    {Element::kF16, 16, 4, 2, 256, 256, 0, 280},
    {Element::kBF16, 16, 4, 1, 256, 256, 256, 280},
    {Element::kF16, 16, 4, 2, 512, 512, 0, 40},
    {Element::kBF16, 16, 4, 1, 512, 512, 0, 40},
    // Latents: as DeepSeek has them, and of sizes that no tile divides.
    {Element::kBF16, 16, 16, 1, 576, 512, 0, 300, 0, true},
    {Element::kBF16, 32, 5, 1, 96, 64, 90, 520, 0, true},
    {Element::kF16, 16, 6, 1, 64, 48, 0, 70, 0, true},
    {Element::kF32, 16, 3, 1, 40, 32, 0, 33, 0, true},
    {Element::kBF16, 7, 4, 1, 30, 20, 0, 100, 0, true},
    // Eight-bit floats and integers, alone and beside others.
    {Element::kE4M3, 16, 9, 3, 64, 64, 0, 300},
    {Element::kE4M3, 5, 4, 2, 33, 17, 40, 90},
    {Element::kE5M2, 32, 4, 2, 96, 80, 0, 530},
    {Element::kE5M2, 16, 4, 1, 96, 64, 0, 70, 0, true},
    {Element::kInt8, 16, 9, 3, 64, 64, 0, 0},
    {Element::kInt8, 16, 9, 3, 64, 64, 0, 255},
    {Element::kInt8, 16, 9, 3, 64, 64, 0, 1100},
    {Element::kInt8, 32, 4, 2, 128, 96, 200, 1000},
    {Element::kInt8, 16, 8, 1, 80, 112, 0, 600, 3},
    {Element::kInt8, 7, 6, 2, 13, 5, 0, 70},
    {Element::kInt8, 1, 2, 1, 8, 8, 0, 100},
    {Element::kInt8, 18, 4, 2, 40, 24, 30, 300},
    {Element::kInt8, 16, 16, 1, 576, 512, 0, 300, 0, true},
    {Element::kInt8, 6, 4, 1, 32, 20, 0, 100, 0, true},
    {Element::kInt4, 16, 9, 3, 64, 64, 0, 0},
    {Element::kInt4, 16, 9, 3, 64, 64, 0, 530},
    {Element::kInt4, 64, 4, 2, 128, 96, 200, 1000},
    {Element::kInt4, 16, 4, 2, 256, 256, 0, 300, 2},
    {Element::kInt4, 5, 6, 2, 32, 64, 0, 70},
    {Element::kInt4, 16, 16, 1, 576, 512, 0, 300, 0, true},
    {Element::kInt4, 3, 4, 1, 96, 64, 50, 100, 0, true},
    {{Element::kInt8, Element::kInt4}, 16, 9, 3, 64, 64, 0, 400},
    {{Element::kInt4, Element::kInt8}, 16, 4, 2, 96, 96, 70, 400},
    {{Element::kBF16, Element::kInt8}, 16, 9, 3, 64, 64, 0, 400},
    {{Element::kInt8, Element::kBF16}, 16, 9, 3, 64, 64, 0, 400},
    {{Element::kF16, Element::kInt4}, 7, 4, 2, 40, 32, 0, 90},
    {{Element::kInt4, Element::kF32}, 16, 4, 2, 64, 40, 0, 90, 1},
    {{Element::kE4M3, Element::kInt8}, 16, 4, 2, 64, 64, 0, 300},
};

// Every pair of an element of keys and one of values.
std::vector<Elements> all_pairs() {
  constexpr Element kElements[] = {Element::kF32,  Element::kF16,  Element::kBF16, Element::kE4M3,
                                   Element::kE5M2, Element::kInt8, Element::kInt4};
  std::vector<Elements> pairs;
  for (const Element keys : kElements) {
    for (const Element values : kElements) pairs.emplace_back(keys, values);
  }
  return pairs;
}

TEST(Attention, EveryPairOfElementsGivesTheReferenceBitsInPagesOfEverySet) {
  for (const Elements elements : all_pairs()) {
    for (const KernelSet* const set : available_sets()) {
      const Case c = {elements, 16, 6, 2, 64, 96, 0, 270};
      Scene plain(c);
      Scene scene(c, set->value_order, set->key_order);
      const std::vector<float> expected = plain.attend(ref_set(set->numerics));
      ASSERT_TRUE(same_bits(scene.attend(*set), expected))
          << set->name << " " << static_cast<int>(elements.keys) << " and "
          << static_cast<int>(elements.values);
    }
  }
}

TEST(Attention, TheReferenceIsAPlainSoftmaxOverVisibleRowsAndReadsNoOther) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    Scene scene(kCases[i]);
    const std::vector<float> out = scene.attend(ref_set());
    const std::vector<double> exact = scene.exact();
    for (std::size_t d = 0; d < out.size(); ++d) {
      // Values reach 30 where outliers are: absolute error of a few hundred roundings, which grows
      // with the scores of long rows.
      const double longer = std::max(1.0, scene.largest_score() / 10);
      ASSERT_NEAR(out[d], exact[d], 5e-5 * longer) << "case " << i;
    }
  }
}

TEST(Attention, EverySetGivesTheReferenceBits) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    Scene scene(kCases[i]);
    for (const KernelSet* const set : available_sets()) {
      const std::vector<float> expected = scene.attend(ref_set(set->numerics));
      ASSERT_TRUE(same_bits(scene.attend(*set), expected)) << set->name << " case " << i;
    }
  }
}

TEST(Attention, TheOrderOfAPageChangesNoBit) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    Scene plain(kCases[i]);
    for (const ValueOrder order : {ValueOrder::kRows, ValueOrder::kTokenGroups}) {
      for (const KeyOrder key_order : {KeyOrder::kRows, KeyOrder::kColumns}) {
        Scene scene(kCases[i], order, key_order);
        for (const KernelSet* const set : available_sets()) {
          const std::vector<float> expected = plain.attend(ref_set(set->numerics));
          ASSERT_TRUE(same_bits(scene.attend(*set), expected)) << set->name << " case " << i;
        }
      }
    }
  }
}

TEST(Attention, TokensThatAttendTogetherGetWhatTheyGetAlone) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    const Case& c = kCases[i];
    for (const KernelSet* const set : available_sets()) {
      Scene scene(c, set->value_order, set->key_order);
      const std::vector<float> alone = scene.attend(*set);
      for (const std::uint32_t rows : {2u, 3u, 5u, 16u, 33u, 64u}) {
        const bool taken = rows * (c.heads / c.kv_heads) <= set->attention_queries;
        const bool rows_are_there =
            c.position + 1 >= rows && first_visible_key(c.position + 1 - rows, c.window) ==
                                          first_visible_key(c.position, c.window);
        if (!taken || !rows_are_there) continue;
        ASSERT_TRUE(same_bits(scene.attend(*set, rows), alone))
            << set->name << " case " << i << " rows " << rows;
      }
    }
  }
}

TEST(Attention, Int8Bf16IsAPlainSoftmaxWithinTheRoundingOfItsFactors) {
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    Scene scene(kCases[i]);
    const std::vector<float> out = scene.attend(ref_set(Numerics::kInt8Bf16));
    const std::vector<double> exact = scene.exact();
    // Queries, keys, weights and values are rounded to 8 bits; values reach 30, scores 10 but in
    // long rows, and the error of a score grows with it.
    const double bound = 0.25 * std::max(1.0, scene.largest_score() / 10);
    for (std::size_t d = 0; d < out.size(); ++d) {
      ASSERT_NEAR(out[d], exact[d], bound) << "case " << i;
    }
  }
}

TEST(Attention, AnUnwrittenHalfOfAPairIsNeverMultiplied) {
  // Beside the query's own row, and beside the first row of a window, stands a NaN: every element
  // next to a value that is read. 0 * NaN would show.
  for (const std::uint32_t window : {0u, 4u, 5u}) {
    for (std::uint64_t position = 0; position < 40; ++position) {
      for (const Elements elements : all_pairs()) {
        if (elements.keys != elements.values && position % 7 != 0) continue;
        Scene scene({elements, 16, 4, 2, 32, 64, window, position}, ValueOrder::kTokenGroups,
                    KeyOrder::kColumns);
        for (const KernelSet* const set : available_sets()) {
          for (const float value : scene.attend(*set)) {
            ASSERT_TRUE(std::isfinite(value)) << set->name << " position " << position;
          }
        }
      }
    }
  }
}

// The rule of ops.h: never hidden, never felt by who does not see it.
TEST(Attention, ATokenThatIsNotFiniteIsNaNToWhoSeesItAndNothingToOthers) {
  for (const Elements elements : all_pairs()) {
    const Case c = {elements, 16, 6, 2, 32, 64, 0, 41};
    for (const KernelSet* const set : available_sets()) {
      for (const bool in_keys : {true, false}) {
        const float limit =
            first_infinite(set->numerics, in_keys ? elements.keys : elements.values);
        for (const float bad : {HUGE_VALF, -HUGE_VALF, NAN, limit, -limit}) {
          for (const std::uint64_t token : {0, 17, 41}) {
            Scene scene(c, set->value_order, set->key_order);
            const bool together = set->attention_queries >= 6;
            std::vector<float> blind;  // the token before the last one, which does not see it
            if (together) blind = scene.attend(*set, 2, 1);
            scene.store_with(*set, token, in_keys, bad);
            const std::vector<float> out = scene.attend(*set);
            for (std::size_t i = 0; i < out.size(); ++i) {
              ASSERT_EQ(std::isfinite(out[i]), i < out.size() / 2)
                  << set->name << ", " << bad << (in_keys ? " in keys" : " in values")
                  << " of token " << token << ", output " << i;
            }
            if (together && token == 41) {
              ASSERT_TRUE(same_bits(scene.attend(*set, 2, 1), blind)) << set->name << " " << bad;
            }
          }
        }
      }
    }
  }
}

// Rows that look at the first keys alone get what a row gets that comes right behind them.
TEST(Attention, KeysFromABoundOnAreNotSeen) {
  std::size_t compared = 0;
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    for (const std::uint32_t keys : {1u, 4u, 17u, 300u}) {
      if (kCases[i].window != 0 || kCases[i].position < keys + 4) continue;
      Case bounded = kCases[i];
      bounded.keys = keys;
      Case shorter = kCases[i];
      shorter.position = keys - 1;
      for (const KernelSet* const set : available_sets()) {
        const std::vector<float> expected =
            Scene(shorter, set->value_order, set->key_order).attend(*set);
        Scene scene(bounded, set->value_order, set->key_order);
        ASSERT_TRUE(same_bits(scene.attend(*set), expected))
            << set->name << " case " << i << ", " << keys << " keys";
        if (3 * (bounded.heads / bounded.kv_heads) > set->attention_queries) continue;
        ASSERT_TRUE(same_bits(scene.attend(*set, 3), expected))
            << set->name << " case " << i << ", " << keys << " keys, 3 rows";
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 30u);
}

TEST(Attention, WindowsAndSplitsAreCountedFromPositionZero) {
  EXPECT_EQ(first_visible_key(10, 0), 0u);
  EXPECT_EQ(first_visible_key(10, 11), 0u);
  EXPECT_EQ(first_visible_key(10, 10), 1u);
  EXPECT_EQ(first_visible_key(10, 1), 10u);
  EXPECT_EQ(first_visible_key(7, 5, 3), 0u) << "the window reaches the sinks";
  EXPECT_EQ(first_visible_key(8, 5, 3), 4u);
  EXPECT_EQ(visible_splits(511, 0, 512).last, 1u);
  EXPECT_EQ(visible_splits(512, 0, 512).last, 2u);
  EXPECT_EQ(visible_splits(1024, 2, 512).first, 1u);
  EXPECT_EQ(visible_splits(1024, 1, 512).first, 2u);
}

}  // namespace
}  // namespace pagoda::kernels
