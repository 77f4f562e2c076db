// Attention of many query rows on warpgroups: the bits of the kernel for few, and its reference's
// result.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <ostream>
#include <vector>

#include "base/half.h"
#include "device/device_fixture.h"
#include "kernels/cuda/attention/cached_row.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"
#include "model/attention_plan.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using cuda::AttentionItem;
using cuda::BatchSequence;
using kv::memory::Element;
using kv::memory::Elements;

struct Case {
  std::uint32_t dim = 128;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 1;
  std::uint32_t window = 0;
  std::uint32_t block_tokens = 16;
  Elements elements = Element::kBF16;
  bool sinks = false;
  std::uint32_t policy_window = 0;  // of the sequences
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.heads << " of " << c.kv_heads << " heads of " << c.dim << ", window " << c.window
       << ", blocks of " << c.block_tokens << ", " << cache_name(c.elements)
       << (c.sinks ? ", sinks" : "") << ", policy " << c.policy_window;
}

std::uint16_t bits_of(Element element, float value) {
  return element == Element::kBF16 ? bf16_from_float(value) : fp16_from_float(value);
}

// Sequences with rows of queries over pages: tables are shuffled, rows of no token are NaN, and
// what left the window is nowhere.
class WideAttentionFixture {
 public:
  // With `nan_keys` those of the second split are not numbers.
  WideAttentionFixture(const Case& tested, std::vector<BatchSequence> sequences,
                       bool nan_keys = false)
      : case_(tested), sequences_(std::move(sequences)), nan_keys_(nan_keys) {
    layout_ = {.elements = case_.elements,
               .block_tokens = case_.block_tokens,
               .layers = 2,
               .kv_heads = case_.kv_heads,
               .key_dim = case_.dim,
               .value_dim = case_.dim};
    std::uint32_t blocks = 0;
    for (BatchSequence& sequence : sequences_) {
      sequence.table = blocks;
      sequence.first_row = rows_;
      sequence.window = case_.policy_window;
      rows_ += sequence.rows;
      blocks += blocks_of(sequence);
    }
    for (std::uint32_t i = 0; i < blocks; ++i) table_.push_back(i);
    for (std::uint32_t i = blocks; i > 1; --i)
      std::swap(table_[i - 1], table_[random_bits(1, 2, i) % i]);
    pages_.resize(blocks * layout_.page_bytes(), std::byte{0xFF});
    for (std::uint32_t s = 0; s < sequences_.size(); ++s) fill_pages(s);
    for (std::size_t i = 0; i < std::size_t{rows_} * case_.heads * case_.dim; ++i) {
      queries_.push_back(bits_of(case_.elements.keys, uniform(3, i, 2.0f)));
    }
    for (std::uint32_t h = 0; h < case_.heads; ++h) sinks_.push_back(uniform(4, h, 3.0f));
  }

  // A row of keys (part 0) or values (1) before it is rounded.
  std::vector<float> row(int part, std::uint32_t sequence, std::uint32_t head,
                         std::uint64_t token) const {
    std::vector<float> values(case_.dim);
    const std::uint64_t seed = (part == 0 ? 100 : 900) + sequence * 64 + head;
    for (std::uint32_t d = 0; d < case_.dim; ++d) {
      values[d] = uniform(seed, token * case_.dim + d, part == 0 ? 1.5f : 1.0f);
    }
    if (part == 0 && nan_keys_ && token / cuda::kSplitKeys == 1) values.assign(case_.dim, NAN);
    return values;
  }
  float query(std::uint32_t row, std::uint32_t head, std::uint32_t d) const {
    const std::uint16_t bits = queries_[(std::size_t{row} * case_.heads + head) * case_.dim + d];
    return case_.elements.keys == Element::kBF16 ? float_from_bf16(bits) : float_from_fp16(bits);
  }
  std::uint32_t rows() const { return rows_; }
  const std::vector<BatchSequence>& sequences() const { return sequences_; }
  std::optional<float> sink(std::uint32_t head) const {
    return case_.sinks ? std::optional<float>(sinks_[head]) : std::nullopt;
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(case_.dim)); }

  // What attention leaves, [rows, heads, dim], of tiles of so many rows. Integers leave floats,
  // which are turned back elsewhere.
  std::vector<float> attend(std::uint32_t wide_blocks) {
    model::AttentionPlan plan;
    plan.fill(sequences_,
              {.heads = case_.heads,
               .kv_heads = case_.kv_heads,
               .window = case_.window,
               .head_dim = case_.dim},
              {.merges = 0, .wide_rows = 1, .wide_blocks = wide_blocks});
    EXPECT_EQ(plan.items.empty(), wide_blocks == 0);
    const auto& items = wide_blocks == 0 ? plan.wide : plan.items;
    const std::size_t values = cuda::activation_values(rows_, case_.heads * case_.dim);
    const device::Buffer query = gpu_.send(queries_);
    const device::Buffer sequences = gpu_.send(sequences_);
    const device::Buffer pages = gpu_.send(pages_);
    const device::Buffer tables = gpu_.send(table_);
    const device::Buffer list = gpu_.send(items);
    const device::Buffer count = gpu_.send(std::vector{static_cast<std::uint32_t>(items.size())});
    const device::Buffer sinks = gpu_.send(sinks_);
    const device::Buffer activations = gpu_.poisoned(values * sizeof(cuda::Bf16));
    const bool is_rotated = kv::memory::is_integer(case_.elements.values);
    const std::size_t columns = std::size_t{case_.heads} * case_.dim;
    const device::Buffer rotated = gpu_.poisoned(rows_ * columns * sizeof(float));
    const cuda::PagedAttention job = {
        .query = query.as<std::uint16_t>(),
        .sequences = sequences.as<BatchSequence>(),
        .pages = {pages.data(), layout_, 1, tables.as<std::uint32_t>()},
        .heads = case_.heads,
        .window = case_.window,
        .scale = scale(),
        .sinks = case_.sinks ? sinks.as<float>() : nullptr,
        .items = list.as<AttentionItem>(),
        .item_count = count.as<std::uint32_t>(),
        .items_max = static_cast<std::uint32_t>(items.size()),
        .rows = rows_,
        .activations = activations.as<cuda::Bf16>(),
        .rotated = is_rotated ? rotated.as<float>() : nullptr};
    (wide_blocks == 0 ? cuda::launch_paged_attention_wide : cuda::launch_paged_attention)(
        job, gpu_.stream().handle());
    if (is_rotated) return gpu_.fetch<float>(rotated, rows_ * columns);
    const auto packed = gpu_.fetch<cuda::Bf16>(activations, values);
    std::vector<float> plain(rows_ * columns);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      plain[i] = float_from_bf16(packed[cuda::activation_index(i / columns, i % columns, rows_)]);
    }
    return plain;
  }

 private:
  std::uint32_t blocks_of(const BatchSequence& sequence) const {
    return (sequence.first_position + sequence.rows + case_.block_tokens - 1) / case_.block_tokens;
  }
  void fill_pages(std::uint32_t s) {
    const BatchSequence& sequence = sequences_[s];
    for (std::uint32_t token = 0; token < sequence.first_position + sequence.rows; ++token) {
      std::uint32_t& page = table_[sequence.table + token / case_.block_tokens];
      const std::uint32_t at = token % case_.block_tokens;
      const std::uint32_t window = cuda::SeenKeys(case_.window, sequence).window;
      if (window != 0 && token - at + case_.block_tokens + window <= sequence.first_position) {
        page = 0x7FFFFFF0u;
        continue;
      }
      std::byte* const data = pages_.data() + page * layout_.page_bytes();
      for (std::uint32_t head = 0; head < case_.kv_heads; ++head) {
        kv::memory::encode_row(case_.elements.keys, row(0, s, head, token).data(), case_.dim,
                               layout_.key_row(data, 1, head, at));
        kv::memory::encode_row(case_.elements.values, row(1, s, head, token).data(), case_.dim,
                               layout_.value_row(data, 1, head, at));
      }
    }
  }

  Case case_;
  std::vector<BatchSequence> sequences_;
  bool nan_keys_;
  kv::memory::PageLayout layout_;
  std::uint32_t rows_ = 0;
  std::vector<std::uint32_t> table_;
  std::vector<std::byte> pages_;
  std::vector<std::uint16_t> queries_;
  std::vector<float> sinks_;
  DeviceFixture gpu_;
};

class WideAttention : public testing::TestWithParam<Case> {};

void expect_bits_of_narrow_tiles(WideAttentionFixture& gpu, const Case& tested) {
  const auto narrow = gpu.attend(model::kNoWideTiles);
  const auto wide = gpu.attend(0);
  ASSERT_EQ(narrow.size(), wide.size());
  const std::size_t columns = std::size_t{tested.heads} * tested.dim;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(narrow[i]))
        << "row " << i / columns << ", column " << i % columns;
  }
}

// Chunks that begin at multiples of nothing, whole sequences, and two rows.
TEST_P(WideAttention, HasTheBitsOfNarrowTiles) {
  REQUIRE_GPU();
  WideAttentionFixture gpu(GetParam(),
                           {{0, 300, 0, 0}, {0, 77, 1003, 0}, {0, 2, 511, 0}, {0, 130, 257, 0}});
  expect_bits_of_narrow_tiles(gpu, GetParam());
}

// Rows before, within and after a split whose scores are all NaN: it is seen, not skipped.
TEST_P(WideAttention, ASplitOfNanKeysIsNoEmptySplit) {
  REQUIRE_GPU();
  WideAttentionFixture gpu(GetParam(), {{0, 300, 100, 0}, {0, 77, 600, 0}}, true);
  expect_bits_of_narrow_tiles(gpu, GetParam());
  const auto wide = gpu.attend(0);
  const std::size_t columns = std::size_t{GetParam().heads} * GetParam().dim;
  EXPECT_TRUE(std::isfinite(wide[155 * columns]));
  EXPECT_TRUE(std::isnan(wide[156 * columns]));
}

// Both round weights to the cache's element; a last bit of exp2 seldom turns such a rounding.
TEST_P(WideAttention, IsThatOfItsReferenceWithinTheRoundingOfItsResult) {
  REQUIRE_GPU();
  const Case& tested = GetParam();
  WideAttentionFixture gpu(tested, {{0, 203, 611, 0}});
  const auto got = gpu.attend(0);
  const BatchSequence sequence = gpu.sequences().front();
  for (const std::uint32_t row : {0u, 1u, 97u, 128u, 202u}) {
    const std::uint64_t position = sequence.first_position + row;
    const std::uint64_t first =
        cuda::SeenKeys(tested.window, sequence).first(static_cast<std::uint32_t>(position));
    for (std::uint32_t head = 0; head < tested.heads; ++head) {
      const std::uint32_t kv_head = head / (tested.heads / tested.kv_heads);
      std::vector<float> keys((position + 1) * tested.dim);
      std::vector<float> values(keys.size());
      std::vector<float> q(tested.dim);
      for (std::uint64_t token = first; token <= position; ++token) {
        const auto at = static_cast<std::ptrdiff_t>(token * tested.dim);
        std::ranges::copy(cached_row(tested.elements.keys, gpu.row(0, 0, kv_head, token)),
                          keys.begin() + at);
        std::ranges::copy(cached_row(tested.elements.values, gpu.row(1, 0, kv_head, token)),
                          values.begin() + at);
      }
      for (std::uint32_t d = 0; d < tested.dim; ++d) q[d] = gpu.query(row, head, d);
      const std::vector<float> expected =
          cuda::reference::attention({.q = q.data(),
                                      .dim = tested.dim,
                                      .scale = gpu.scale(),
                                      .first = first,
                                      .position = position,
                                      .bf16_weights = tested.elements.values == Element::kBF16,
                                      .sink = gpu.sink(head)},
                                     keys.data(), values.data());
      for (std::uint32_t d = 0; d < tested.dim; ++d) {
        const std::size_t at = (std::size_t{row} * tested.heads + head) * tested.dim + d;
        ASSERT_NEAR(got[at], expected[d], 0x1p-8f * std::abs(expected[d]) + 0x1p-11f)
            << "row " << row << ", head " << head << ", dimension " << d;
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::uint32_t dim : {64u, 128u, 256u}) {
    for (const Elements elements : kGpuPairs) {
      all.push_back(
          {.dim = dim, .heads = 6, .kv_heads = 2, .block_tokens = 64, .elements = elements});
      all.push_back({.dim = dim,
                     .heads = 8,
                     .kv_heads = 1,
                     .window = 300,
                     .block_tokens = 32,
                     .elements = elements});
      all.push_back({.dim = dim, .elements = elements, .policy_window = 150});
      if (kv::memory::unit_bytes(elements.values) == 1) continue;
      all.push_back({.dim = dim, .heads = 4, .kv_heads = 4, .elements = elements});
      all.push_back({.dim = dim, .heads = 8, .kv_heads = 2, .window = 100, .elements = elements});
    }
  }
  all.push_back({.heads = 32, .kv_heads = 8, .block_tokens = 128});
  all.push_back({.dim = 64, .heads = 16, .kv_heads = 2, .window = 128, .sinks = true});
  all.push_back({.heads = 4, .kv_heads = 2, .elements = Element::kF16, .sinks = true});
  all.push_back({.dim = 256, .heads = 4, .kv_heads = 2, .sinks = true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, WideAttention, testing::ValuesIn(cases()));

}  // namespace
}  // namespace pagoda::gpu_test
