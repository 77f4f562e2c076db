// Attention on a GPU, from embeddings to the results of all heads, against codecs and the scalar
// reference; and the same bits however the work is shared out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <ostream>

#include "base/half.h"
#include "device/device_fixture.h"
#include "kernels/cuda/attention/attention_cases.h"
#include "kernels/cuda/attention/cached_row.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"
#include "kernels/hadamard.h"
#include "kv/memory/codec.h"
#include "kv/memory/element_range.h"
#include "kv/memory/rotation_blocks.h"
#include "model/attention_plan.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using kv::memory::Element;
using kv::memory::Elements;
using kv::memory::PageLayout;

// Rows of a step after rows that earlier ones left: (rows, first position).
const std::pair<std::uint32_t, std::uint32_t> kSequences[] = {{1, 0},   {1, 15},  {1, 300},
                                                              {1, 831}, {5, 253}, {30, 500}};

// A step: what it is given, what the cache holds before, and both on a GPU.
class Step {
 public:
  Step(DeviceFixture& gpu, const AttentionCase& c)
      : gpu_(gpu),
        case_(c),
        layout_{.elements = c.elements,
                .block_tokens = c.block_tokens,
                .layers = 2,
                .kv_heads = c.kv_heads,
                .key_dim = c.dim,
                .value_dim = c.dim} {
    std::uint32_t blocks = 0;
    for (const auto& [rows, first] : kSequences) {
      const auto s = static_cast<std::uint32_t>(sequences_.size());
      sequences_.push_back({.first_row = static_cast<std::uint32_t>(batch_tokens_.size()),
                            .rows = rows,
                            .first_position = first,
                            .table = blocks,
                            .window = c.policy_window,
                            .sinks = c.policy_sinks});
      for (std::uint32_t i = 0; i < rows; ++i) {
        batch_tokens_.push_back({0, cuda::kNotSampled, first + i, s});
      }
      blocks += (first + rows + c.block_tokens - 1) / c.block_tokens;
    }
    // A row that nobody has.
    batch_tokens_.push_back({0, cuda::kNotSampled, cuda::kNoPosition, 0});
    // Blocks backwards, with others between; all that no row has is NaN.
    for (std::uint32_t b = 0; b < blocks; ++b) table_.push_back(2 * (blocks - 1 - b) + b % 2);
    pages_.assign(2 * blocks * layout_.page_bytes(), std::byte{0xFF});
    for (std::uint32_t s = 0; s < sequences_.size(); ++s) {
      const cuda::SeenKeys seen(c.window, sequences_[s]);
      const std::uint32_t first = sequences_[s].first_position;
      for (std::uint32_t p = 0; p < first; ++p) {
        if (p < seen.sinks || p >= seen.first(first)) store(pages_, s, p);
      }
    }
    qkv_.resize(batch_tokens_.size() * columns());
    for (std::size_t r = 0; r < batch_tokens_.size(); ++r) {
      for (std::size_t i = 0; i < columns(); ++i) {
        qkv_[r * columns() + i] = uniform(500 + r, i, i < c.heads * c.dim ? 3.0f : 1.0f);
      }
    }
    for (std::uint32_t p = 0; p < kPositions; ++p) {
      for (std::uint32_t i = 0; i < pairs(); ++i) {
        cosines_.push_back(std::cos(0.37f * static_cast<float>(p * i)));
        sines_.push_back(std::sin(0.37f * static_cast<float>(p * i)));
      }
    }
    pages_on_gpu_ = gpu.send(pages_);
    query_on_gpu_ = gpu.poisoned(batch_tokens_.size() * c.heads * c.dim * 2);
    sink_query_on_gpu_ = gpu.poisoned(batch_tokens_.size() * c.heads * c.dim * 2);
    sequences_on_gpu_ = gpu.send(sequences_);
    places_on_gpu_ = gpu.send(batch_tokens_);
    nonfinite_on_gpu_ = gpu.send(std::vector<std::uint32_t>(sequences_.size()));
    table_on_gpu_ = gpu.send(table_);
    for (std::uint32_t h = 0; h < c.heads; ++h) sinks_.push_back(uniform(77, h, 4.0f));
    sinks_on_gpu_ = gpu.send(sinks_);
  }

  const std::vector<cuda::BatchToken>& batch_tokens() const { return batch_tokens_; }
  std::span<const cuda::BatchSequence> sequences() const { return sequences_; }
  const PageLayout& layout() const { return layout_; }
  std::vector<float>& qkv() { return qkv_; }

  void append() {
    const device::Buffer qkv = gpu_.send(qkv_);
    const device::Buffer cosines = gpu_.send(cosines_);
    const device::Buffer sines = gpu_.send(sines_);
    cuda::launch_rope_and_store_kv({.qkv = qkv.as<float>(),
                                    .batch_tokens = places_on_gpu_.as<cuda::BatchToken>(),
                                    .sequences = sequences_on_gpu_.as<cuda::BatchSequence>(),
                                    .pages = pages(),
                                    .rows = static_cast<std::uint32_t>(batch_tokens_.size()),
                                    .heads = case_.heads,
                                    .window = case_.window,
                                    .table_positions = kPositions,
                                    .cosines = cosines.as<float>(),
                                    .sines = sines.as<float>(),
                                    .pairs = pairs(),
                                    .adjacent = adjacent(),
                                    .query = query_on_gpu_.as<std::uint16_t>(),
                                    .sink_query = sink_query_on_gpu_.as<std::uint16_t>(),
                                    .nonfinite = nonfinite_on_gpu_.as<std::uint32_t>()},
                                   gpu_.stream().handle());
    gpu_.finish();
  }
  std::vector<std::byte> pages_now() { return gpu_.fetch<std::byte>(pages_on_gpu_, pages_.size()); }
  std::vector<std::uint16_t> query_now() {
    return gpu_.fetch<std::uint16_t>(query_on_gpu_, batch_tokens_.size() * case_.heads * case_.dim);
  }
  // Of each sequence.
  std::vector<std::uint32_t> nonfinite_now() {
    return gpu_.fetch<std::uint32_t>(nonfinite_on_gpu_, sequences_.size());
  }
  // [rows][heads][dim], with as many blocks at once as `blocks`; `general`: by the kernel of all
  // heads.
  std::vector<cuda::Bf16> attend(std::uint32_t blocks, bool general = false) {
    model::AttentionPlan plan;
    plan.fill(sequences_,
              {.heads = case_.heads, .kv_heads = case_.kv_heads, .window = case_.window},
              {.blocks = blocks, .wide_blocks = model::kNoWideTiles});
    const std::uint32_t columns = case_.heads * case_.dim;
    const auto rows = static_cast<std::uint32_t>(batch_tokens_.size());
    const device::Buffer activations = gpu_.poisoned(2 * cuda::activation_values(rows, columns));
    const device::Buffer partials = gpu_.poisoned(4 * (1u << 16) * cuda::partial_floats(512));
    const device::Buffer rotated = gpu_.poisoned(std::size_t{4} * rows * columns);
    const std::uint32_t block = rotation_blocks(layout_).values;
    const device::Buffer items = gpu_.send(plan.items);
    const device::Buffer counts =
        gpu_.send(std::vector<std::uint32_t>{static_cast<std::uint32_t>(plan.items.size()),
                                             static_cast<std::uint32_t>(plan.merges.size())});
    cuda::PagedAttention job = {.query = query_on_gpu_.as<std::uint16_t>(),
                                .sink_query = sink_query_on_gpu_.as<std::uint16_t>(),
                                .sequences = sequences_on_gpu_.as<cuda::BatchSequence>(),
                                .pages = pages(),
                                .heads = case_.heads,
                                .window = case_.window,
                                .scale = scale(),
                                .cap = case_.cap,
                                .sinks = case_.sinks ? sinks_on_gpu_.as<float>() : nullptr,
                                .items = items.as<cuda::AttentionItem>(),
                                .item_count = counts.as<std::uint32_t>(),
                                .items_max = static_cast<std::uint32_t>(plan.items.size()) + 3,
                                .rows = rows,
                                .partials = partials.as<float>(),
                                .activations = activations.as<cuda::Bf16>(),
                                .rotated = block != 0 ? rotated.as<float>() : nullptr};
    (general ? cuda::launch_general_attention : cuda::launch_paged_attention)(
        job, gpu_.stream().handle());
    device::Buffer merges;
    if (!plan.merges.empty()) {
      merges = gpu_.send(plan.merges);
      job.items = merges.as<cuda::AttentionItem>();
      job.item_count = counts.as<std::uint32_t>() + 1;
      job.items_max = static_cast<std::uint32_t>(plan.merges.size()) + 1;
      cuda::launch_merge_splits(job, gpu_.stream().handle());
    }
    if (block != 0) {
      cuda::launch_rotate_back({.rotated = rotated.as<float>(),
                                .rows = rows,
                                .heads = case_.heads,
                                .value_dim = case_.dim,
                                .columns = case_.dim,
                                .block = block,
                                .activations = activations.as<cuda::Bf16>()},
                               gpu_.stream().handle());
    }
    const auto blocked =
        gpu_.fetch<cuda::Bf16>(activations, cuda::activation_values(rows, columns));
    std::vector<cuda::Bf16> plain(std::size_t{rows} * columns);
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t i = 0; i < columns; ++i) {
        plain[std::size_t{r} * columns + i] = blocked[cuda::activation_index(r, i, rows)];
      }
    }
    return plain;
  }

  // What a row of keys (part 0) or values (1) is before it is rounded.
  std::vector<float> unrounded(std::uint32_t s, std::uint32_t p, std::uint32_t head, int part) {
    std::vector<float> row(case_.dim);
    if (p < sequences_[s].first_position) {
      const std::uint64_t seed = ((std::uint64_t{s} * kPositions + p) * 64 + head) * 2 + part;
      for (std::uint32_t d = 0; d < case_.dim; ++d) row[d] = uniform(90000 + seed, d, 1.0f);
      return row;
    }
    const std::uint32_t r = sequences_[s].first_row + p - sequences_[s].first_position;
    const float* const from =
        qkv_.data() + r * columns() + (case_.heads + part * case_.kv_heads + head) * case_.dim;
    row.assign(from, from + case_.dim);
    if (part == 0) rotate(row, p);
    turn(row, part == 0 ? rotation_blocks(layout_).keys : rotation_blocks(layout_).values);
    return row;
  }
  std::vector<float> unrounded_query(std::uint32_t r, std::uint32_t head, std::uint32_t position) {
    const float* const from = qkv_.data() + r * columns() + head * case_.dim;
    std::vector<float> row(from, from + case_.dim);
    rotate(row, position);
    turn(row, rotation_blocks(layout_).keys);
    return row;
  }
  std::vector<float> rounded_query(std::uint32_t r, std::uint32_t head, std::uint32_t position) {
    std::vector<float> row = unrounded_query(r, head, position);
    for (float& value : row) value = query_value(round_query(value));
    return row;
  }
  static void turn(std::vector<float>& row, std::uint32_t block) {
    if (block != 0) kernels::hadamard(row.data(), row.size(), block);
  }
  std::vector<float> rounded(std::uint32_t s, std::uint32_t p, std::uint32_t head, int part) {
    const Element element = part == 0 ? case_.elements.keys : case_.elements.values;
    return cached_row(element, unrounded(s, p, head, part));
  }
  void store(std::vector<std::byte>& pages, std::uint32_t s, std::uint32_t p) {
    std::byte* const page =
        pages.data() + layout_.page_bytes() * table_[sequences_[s].table + p / case_.block_tokens];
    const std::uint32_t token = p % case_.block_tokens;
    for (std::uint32_t head = 0; head < case_.kv_heads; ++head) {
      kv::memory::encode_row(case_.elements.keys, unrounded(s, p, head, 0).data(), case_.dim,
                             layout_.key_row(page, kLayer, head, token));
      kv::memory::encode_row(case_.elements.values, unrounded(s, p, head, 1).data(), case_.dim,
                             layout_.value_row(page, kLayer, head, token));
    }
  }
  const std::vector<std::byte>& pages_before() const { return pages_; }
  std::optional<float> sink(std::uint32_t head) const {
    return case_.sinks ? std::optional<float>(sinks_[head]) : std::nullopt;
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(case_.dim)); }
  std::uint16_t round_query(float value) const {
    return case_.elements.keys == Element::kBF16 ? bf16_from_float(value) : fp16_from_float(value);
  }
  float query_value(std::uint16_t bits) const {
    return case_.elements.keys == Element::kBF16 ? float_from_bf16(bits) : float_from_fp16(bits);
  }

 private:
  static constexpr std::uint32_t kPositions = 1024;
  static constexpr std::uint32_t kLayer = 1;

  std::size_t columns() const { return (case_.heads + 2 * case_.kv_heads) * case_.dim; }
  // Not all dimensions are rotated.
  std::uint32_t pairs() const { return case_.dim / 4; }
  bool adjacent() const { return case_.heads % 2 == 0; }
  void rotate(std::vector<float>& row, std::uint32_t p) const {
    const float* const cosines = cosines_.data() + p * pairs();
    const float* const sines = sines_.data() + p * pairs();
    for (std::uint32_t i = 0; i < pairs(); ++i) {
      float& first = row[adjacent() ? 2 * i : i];
      float& second = row[adjacent() ? 2 * i + 1 : i + pairs()];
      const float a = first;
      const float b = second;
      first = a * cosines[i] - b * sines[i];
      second = a * sines[i] + b * cosines[i];
    }
  }
  cuda::PagedKv pages() const {
    return {pages_on_gpu_.as<std::byte>(), layout_, kLayer, table_on_gpu_.as<std::uint32_t>()};
  }

  DeviceFixture& gpu_;
  AttentionCase case_;
  PageLayout layout_;
  std::vector<cuda::BatchSequence> sequences_;
  std::vector<cuda::BatchToken> batch_tokens_;
  std::vector<std::uint32_t> table_;
  std::vector<std::byte> pages_;
  std::vector<float> qkv_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
  device::Buffer pages_on_gpu_;
  device::Buffer query_on_gpu_;
  device::Buffer sink_query_on_gpu_;
  device::Buffer sequences_on_gpu_;
  device::Buffer places_on_gpu_;
  device::Buffer nonfinite_on_gpu_;
  device::Buffer table_on_gpu_;
  std::vector<float> sinks_;
  device::Buffer sinks_on_gpu_;
};

class GpuAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(GpuAttention, StoredRowsHaveTheBitsOfTheCodecAndNoOtherByteChanges) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  Step step(gpu, GetParam());
  step.append();
  std::vector<std::byte> expected = step.pages_before();
  for (const cuda::BatchToken& place : step.batch_tokens()) {
    if (place.position != cuda::kNoPosition) step.store(expected, place.sequence, place.position);
  }
  ASSERT_TRUE(step.pages_now() == expected);
  const std::vector<std::uint16_t> query = step.query_now();
  const std::size_t row_values = GetParam().heads * GetParam().dim;
  for (std::uint32_t r = 0; r + 1 < step.batch_tokens().size(); ++r) {
    for (std::uint32_t head = 0; head < GetParam().heads; ++head) {
      const std::vector<float> exact =
          step.unrounded_query(r, head, step.batch_tokens()[r].position);
      for (std::uint32_t d = 0; d < GetParam().dim; ++d) {
        ASSERT_EQ(query[r * row_values + head * GetParam().dim + d], step.round_query(exact[d]))
            << "row " << r << ", head " << head << ", dimension " << d;
      }
    }
  }
}

// Results differ by their rounding to bf16 and by weights that round the other way: a lost key
// would be ten times as much.
TEST_P(GpuAttention, ResultsAreTheReferencesHoweverTheWorkIsSharedOut) {
  REQUIRE_GPU();
  const AttentionCase& c = GetParam();
  DeviceFixture gpu;
  Step step(gpu, c);
  step.append();
  const std::vector<cuda::Bf16> got = step.attend(100000);
  for (const std::uint32_t blocks : {1u, 40u}) {
    ASSERT_TRUE(step.attend(blocks) == got) << blocks << " blocks";
    ASSERT_TRUE(step.attend(blocks, true) == got) << blocks << " blocks, the general kernel";
  }
  for (std::uint32_t s = 0; s < step.sequences().size(); ++s) {
    const cuda::BatchSequence& sequence = step.sequences()[s];
    for (const std::uint32_t head : {0u, c.heads - 1}) {
      std::vector<float> keys;
      std::vector<float> values;
      for (std::uint32_t p = 0; p < sequence.first_position + sequence.rows; ++p) {
        const std::vector<float> key = step.rounded(s, p, head * c.kv_heads / c.heads, 0);
        const std::vector<float> value = step.rounded(s, p, head * c.kv_heads / c.heads, 1);
        keys.insert(keys.end(), key.begin(), key.end());
        values.insert(values.end(), value.begin(), value.end());
      }
      for (std::uint32_t i = 0; i < sequence.rows; i += 7) {
        const std::uint32_t position = sequence.first_position + i;
        const cuda::SeenKeys seen(c.window, sequence);
        const std::uint32_t row = sequence.first_row + i;
        const std::vector<float> query = step.rounded_query(row, head, position);
        const bool has_gap = seen.has_gap(position);
        const std::vector<float> at_sinks =
            step.rounded_query(row, head, has_gap ? seen.sinks + seen.window - 1 : 0);
        std::vector<float> expected =
            cuda::reference::attention({.q = query.data(),
                                        .dim = c.dim,
                                        .scale = step.scale(),
                                        .first = seen.first(position),
                                        .position = position,
                                        .bf16_weights = c.elements.values == Element::kBF16,
                                        .cap = c.cap,
                                        .sink = step.sink(head),
                                        .sink_q = at_sinks.data(),
                                        .sinks = has_gap ? seen.sinks : 0},
                                       keys.data(), values.data());
        Step::turn(expected, rotation_blocks(step.layout()).values);
        double error = 0;
        double norm = 0;
        for (std::uint32_t d = 0; d < c.dim; ++d) {
          const float value = float_from_bf16(
              got[(std::size_t{sequence.first_row + i} * c.heads + head) * c.dim + d]);
          error += (value - expected[d]) * (value - expected[d]);
          norm += expected[d] * expected[d];
        }
        ASSERT_LT(std::sqrt(error / norm), 4e-3)
            << "sequence " << s << ", position " << position << ", head " << head;
      }
    }
  }
}

// The rule of kernels/ops.h, for queries (part 0), keys (1) and values (2), with the bounds of
// CPUs.
TEST_P(GpuAttention, AHeadThatIsNotFiniteIsNaNToWhoSeesItAndNothingToOthers) {
  REQUIRE_GPU();
  const AttentionCase& c = GetParam();
  for (const std::uint32_t part : {0u, 1u, 2u}) {
    const Element element = part == 2 ? c.elements.values : c.elements.keys;
    // What one dimension has is spread over its block, where a row is rotated.
    const bool is_rotated = kv::memory::is_integer(element);
    const float limit = kv::memory::first_infinite_on_gpu(element) * (is_rotated ? 23.0f : 1.0f);
    const float largest = std::nextafter(is_rotated ? limit / 24 : limit, 0.0f);
    for (const float bad : {INFINITY, NAN, -3.4e38f, limit, -limit, largest}) {
      DeviceFixture gpu;
      Step step(gpu, c);
      const std::uint32_t heads_before[] = {0, c.heads, c.heads + c.kv_heads};
      const std::uint32_t head = heads_before[part] + (part == 0 ? c.heads : c.kv_heads) - 1;
      // The first sequence's only row; the last dimension is never rotated.
      step.qkv()[head * c.dim + c.dim - 1] = bad;
      step.append();
      const bool finite = bad == largest;
      std::vector<std::uint32_t> nonfinite(step.sequences().size(), 0);
      if (!finite) nonfinite[0] = cuda::nonfinite_word(step.sequences()[0].first_position);
      ASSERT_EQ(step.nonfinite_now(), nonfinite) << bad << ", part " << part;
      if (finite) continue;
      const std::vector<cuda::Bf16> got = step.attend(1);
      const std::size_t own = (c.heads - 1) * c.dim;
      const std::size_t next = c.heads * c.dim;
      for (std::uint32_t d = 0; d < c.dim; ++d) {
        ASSERT_TRUE(std::isnan(float_from_bf16(got[own + d])))
            << bad << ", part " << part << ", dimension " << d;
        ASSERT_TRUE(std::isfinite(float_from_bf16(got[next + d]))) << "the next row";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuAttention, testing::ValuesIn(all_cases()));
INSTANTIATE_TEST_SUITE_P(KvPairs, GpuAttention, testing::ValuesIn(pair_cases()));
INSTANTIATE_TEST_SUITE_P(Policies, GpuAttention, testing::ValuesIn(policy_cases()));

}  // namespace
}  // namespace pagoda::gpu_test
