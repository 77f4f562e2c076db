// Latent attention on a GPU: rows and queries as codecs and the host round them, and results as the
// reference has them, however the work is shared out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ostream>

#include "base/half.h"
#include "device/device_fixture.h"
#include "kernels/cuda/attention/cached_row.h"
#include "kernels/cuda/open_gpu.h"
#include "kernels/cuda/random_matrix.h"
#include "kernels/cuda/reference.h"
#include "kernels/hadamard.h"
#include "kv/memory/codec.h"
#include "kv/memory/rotation_blocks.h"
#include "model/attention_plan.h"

namespace pagoda::gpu_test {
namespace {

namespace cuda = kernels::cuda;
using kv::memory::Element;
using kv::memory::PageLayout;

struct LatentCase {
  Element element;
  std::uint32_t rank;
  std::uint32_t rotating;
  std::uint32_t heads;
  std::uint32_t block_tokens;
};
void PrintTo(const LatentCase& c, std::ostream* out) {
  *out << "element " << static_cast<int>(c.element) << ", latents of " << c.rank << " + "
       << c.rotating << ", " << c.heads << " heads, blocks of " << c.block_tokens;
}

const LatentCase kLatentCases[] = {
    {Element::kBF16, 512, 64, 16, 16},   {Element::kF16, 512, 64, 5, 64},
    {Element::kE4M3, 512, 64, 20, 32},   {Element::kBF16, 32, 8, 4, 16},
    {Element::kBF16, 256, 64, 128, 128}, {Element::kBF16, 512, 64, 128, 64},
    {Element::kBF16, 272, 16, 8, 16},    {Element::kE4M3, 272, 16, 8, 32},
    {Element::kInt8, 512, 64, 16, 16},   {Element::kInt8, 272, 16, 5, 64},
    {Element::kInt4, 512, 64, 20, 32},   {Element::kInt4, 64, 32, 8, 16},
    {Element::kE5M2, 256, 64, 16, 16},
};

const std::vector<cuda::BatchSequence> kLatentSequences = {
    {0, 1, 0, 0}, {1, 1, 700, 0}, {2, 9, 250, 0}};
constexpr std::uint32_t kQueryPlain = 24;  // of a raw query: what does not rotate
constexpr std::uint32_t kContext = 1024;

class LatentStep {
 public:
  LatentStep(DeviceFixture& gpu, const LatentCase& tested)
      : gpu_(gpu),
        case_(tested),
        layout_{.elements = tested.element,
                .block_tokens = tested.block_tokens,
                .layers = 2,
                .kv_heads = 1,
                .key_dim = tested.rank + tested.rotating,
                .value_dim = tested.rank,
                .values_in_keys = true},
        sequences_(kLatentSequences) {
    std::uint32_t blocks = 0;
    for (std::uint32_t s = 0; s < sequences_.size(); ++s) {
      sequences_[s].table = blocks;
      const std::uint32_t tokens = sequences_[s].first_position + sequences_[s].rows;
      blocks += (tokens + case_.block_tokens - 1) / case_.block_tokens;
      for (std::uint32_t i = 0; i < sequences_[s].rows; ++i) {
        batch_.push_back({0, cuda::kNotSampled, sequences_[s].first_position + i, s});
      }
    }
    batch_.push_back({0, cuda::kNotSampled, cuda::kNoPosition, 0});
    for (std::uint32_t b = 0; b < blocks; ++b) table_.push_back(2 * (blocks - 1 - b) + b % 2);
    pages_.assign(2 * blocks * layout_.page_bytes(), std::byte{0xFF});
    for (std::uint32_t s = 0; s < sequences_.size(); ++s) {
      for (std::uint32_t p = 0; p < sequences_[s].first_position; ++p) {
        encode(pages_, s, p, past_row(s, p));
      }
    }
    fill(keys_, batch_.size() * layout_.key_dim, 1, 1.0f);
    fill(absorbed_, batch_.size() * case_.heads * case_.rank, 2, 0.5f);
    fill(raw_, batch_.size() * case_.heads * query_dim(), 3, 1.0f);
    for (std::uint32_t i = 0; i < kContext * pairs(); ++i) {
      cosines_.push_back(std::cos(0.01f * static_cast<float>(i)));
      sines_.push_back(std::sin(0.01f * static_cast<float>(i)));
    }
  }

  std::uint32_t query_dim() const { return kQueryPlain + case_.rotating; }
  std::uint32_t pairs() const { return case_.rotating / 2; }
  const PageLayout& layout() const { return layout_; }
  const std::vector<cuda::BatchSequence>& sequences() const { return sequences_; }
  const std::vector<cuda::BatchToken>& batch() const { return batch_; }
  std::vector<float>& keys() { return keys_; }
  const std::vector<std::byte>& pages_before() const { return pages_; }

  // Rotates, stores and attends; `blocks` thread blocks run at once.
  void run(std::uint32_t blocks) {
    const device::Buffer keys = gpu_.send(keys_);
    const device::Buffer absorbed = gpu_.send(absorbed_);
    const device::Buffer raw = gpu_.send(raw_);
    const device::Buffer cosines = gpu_.send(cosines_);
    const device::Buffer sines = gpu_.send(sines_);
    const device::Buffer pages = gpu_.send(pages_);
    const device::Buffer batch = gpu_.send(batch_);
    const device::Buffer sequences = gpu_.send(sequences_);
    const device::Buffer table = gpu_.send(table_);
    const device::Buffer flags = gpu_.send(std::vector<std::uint32_t>(sequences_.size()));
    const auto rows = static_cast<std::uint32_t>(batch_.size());
    const std::size_t queries = std::size_t{rows} * case_.heads * layout_.key_dim;
    const device::Buffer query = gpu_.poisoned(queries * 2);
    const cuda::PagedKv paged = {pages.data(), layout_, 1, table.as<std::uint32_t>()};
    cuda::launch_rope_and_store_latents({.keys = keys.as<float>(),
                                         .absorbed = absorbed.as<float>(),
                                         .raw_queries = raw.as<float>(),
                                         .query_dim = query_dim(),
                                         .to = {.batch_tokens = batch.as<cuda::BatchToken>(),
                                                .sequences = sequences.as<cuda::BatchSequence>(),
                                                .pages = paged,
                                                .rows = rows,
                                                .heads = case_.heads,
                                                .cosines = cosines.as<float>(),
                                                .sines = sines.as<float>(),
                                                .pairs = pairs(),
                                                .query = query.as<std::uint16_t>(),
                                                .nonfinite = flags.as<std::uint32_t>()}},
                                        gpu_.stream().handle());
    query_after = gpu_.fetch<std::uint16_t>(query, queries);
    pages_after = gpu_.fetch<std::byte>(pages, pages_.size());
    nonfinite_after = gpu_.fetch<std::uint32_t>(flags, sequences_.size());
    attend(paged, query, sequences, blocks);
  }

  // What a run left.
  std::vector<std::uint16_t> query_after;
  std::vector<std::byte> pages_after;
  std::vector<std::uint32_t> nonfinite_after;
  std::vector<cuda::Bf16> results_after;  // [rows][heads][columns of a head]

  std::vector<float> rotated(const float* from, std::uint32_t position) const {
    std::vector<float> row(from, from + case_.rotating);
    for (std::uint32_t i = 0; i < pairs(); ++i) {
      const float cosine = cosines_[position * pairs() + i];
      const float sine = sines_[position * pairs() + i];
      const float a = row[2 * i];
      const float b = row[2 * i + 1];
      row[2 * i] = a * cosine - b * sine;
      row[2 * i + 1] = a * sine + b * cosine;
    }
    return row;
  }
  // The row of position p before it is rounded.
  std::vector<float> row_of(std::uint32_t s, std::uint32_t p) const {
    if (p < sequences_[s].first_position) return past_row(s, p);
    const std::size_t r = sequences_[s].first_row + p - sequences_[s].first_position;
    const float* const key = keys_.data() + r * layout_.key_dim;
    std::vector<float> row(key, key + case_.rank);
    const std::vector<float> turned = rotated(key + case_.rank, p);
    row.insert(row.end(), turned.begin(), turned.end());
    turn(row);
    return row;
  }
  std::vector<float> query_of(std::uint32_t r, std::uint32_t head) const {
    const std::size_t index = std::size_t{r} * case_.heads + head;
    const float* const plain = absorbed_.data() + index * case_.rank;
    std::vector<float> row(plain, plain + case_.rank);
    const std::vector<float> turned =
        rotated(raw_.data() + index * query_dim() + kQueryPlain, batch_[r].position);
    row.insert(row.end(), turned.begin(), turned.end());
    turn(row);
    return row;
  }
  // Multiplies a row, or the value at its beginning, by the Hadamard matrix where rows are rotated.
  void turn(std::vector<float>& row) const {
    const std::uint32_t block = rotation_blocks(layout_).keys;
    if (block != 0) kernels::hadamard(row.data(), row.size(), block);
  }
  void encode(std::vector<std::byte>& pages, std::uint32_t s, std::uint32_t p,
              const std::vector<float>& row) const {
    std::byte* const page =
        pages.data() + layout_.page_bytes() * table_[sequences_[s].table + p / case_.block_tokens];
    kv::memory::encode_row(case_.element, row.data(), row.size(),
                           layout_.key_row(page, 1, 0, p % case_.block_tokens));
  }

 private:
  static void fill(std::vector<float>& values, std::size_t count, std::uint64_t seed, float bound) {
    values.resize(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = uniform(seed, i, bound);
  }
  std::vector<float> past_row(std::uint32_t s, std::uint32_t p) const {
    std::vector<float> row(layout_.key_dim);
    for (std::uint32_t d = 0; d < row.size(); ++d) {
      row[d] = uniform(1000 + s * kContext + p, d, 1.0f);
    }
    return row;
  }
  void attend(const cuda::PagedKv& paged, const device::Buffer& query,
              const device::Buffer& sequences, std::uint32_t blocks) {
    model::AttentionPlan plan;
    plan.fill(sequences_, {.heads = case_.heads, .kv_heads = 1},
              {.blocks = blocks, .wide_blocks = model::kNoWideTiles});
    const std::uint32_t columns = case_.heads * cuda::attention_columns(layout_);
    const auto rows = static_cast<std::uint32_t>(batch_.size());
    const std::size_t values = cuda::activation_values(rows, columns);
    const device::Buffer activations = gpu_.poisoned(2 * values);
    const device::Buffer partials = gpu_.poisoned(4 * (1u << 14) * cuda::partial_floats(512));
    const device::Buffer floats = gpu_.poisoned(std::size_t{4} * rows * case_.heads * case_.rank);
    const std::uint32_t block = rotation_blocks(layout_).values;
    const device::Buffer items = gpu_.send(plan.items);
    const device::Buffer counts =
        gpu_.send(std::vector<std::uint32_t>{static_cast<std::uint32_t>(plan.items.size()),
                                             static_cast<std::uint32_t>(plan.merges.size())});
    cuda::PagedAttention job = {.query = query.as<std::uint16_t>(),
                                .sequences = sequences.as<cuda::BatchSequence>(),
                                .pages = paged,
                                .heads = case_.heads,
                                .scale = kScale,
                                .items = items.as<cuda::AttentionItem>(),
                                .item_count = counts.as<std::uint32_t>(),
                                .items_max = static_cast<std::uint32_t>(plan.items.size()),
                                .rows = rows,
                                .partials = partials.as<float>(),
                                .activations = activations.as<cuda::Bf16>(),
                                .rotated = block != 0 ? floats.as<float>() : nullptr};
    cuda::launch_paged_attention(job, gpu_.stream().handle());
    device::Buffer merges;
    if (!plan.merges.empty()) {
      merges = gpu_.send(plan.merges);
      job.items = merges.as<cuda::AttentionItem>();
      job.item_count = counts.as<std::uint32_t>() + 1;
      job.items_max = static_cast<std::uint32_t>(plan.merges.size());
      cuda::launch_merge_splits(job, gpu_.stream().handle());
    }
    if (block != 0) {
      cuda::launch_rotate_back({.rotated = floats.as<float>(),
                                .rows = rows,
                                .heads = case_.heads,
                                .value_dim = case_.rank,
                                .columns = cuda::attention_columns(layout_),
                                .block = block,
                                .activations = activations.as<cuda::Bf16>()},
                               gpu_.stream().handle());
    }
    const auto packed = gpu_.fetch<cuda::Bf16>(activations, values);
    results_after.resize(std::size_t{rows} * columns);
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t c = 0; c < columns; ++c) {
        results_after[std::size_t{r} * columns + c] = packed[cuda::activation_index(r, c, rows)];
      }
    }
  }

 public:
  static constexpr float kScale = 0.11f;

 private:
  DeviceFixture& gpu_;
  LatentCase case_;
  PageLayout layout_;
  std::vector<cuda::BatchSequence> sequences_;
  std::vector<cuda::BatchToken> batch_;
  std::vector<std::uint32_t> table_;
  std::vector<std::byte> pages_;
  std::vector<float> keys_;
  std::vector<float> absorbed_;
  std::vector<float> raw_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

class GpuLatents : public testing::TestWithParam<LatentCase> {};

TEST_P(GpuLatents, RowsAndQueriesHaveTheBitsOfTheHost) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const LatentCase& c = GetParam();
  LatentStep step(gpu, c);
  step.run(100000);
  std::vector<std::byte> expected = step.pages_before();
  for (const cuda::BatchToken& token : step.batch()) {
    if (token.position == cuda::kNoPosition) continue;
    step.encode(expected, token.sequence, token.position,
                step.row_of(token.sequence, token.position));
  }
  ASSERT_TRUE(step.pages_after == expected);
  const std::uint32_t dim = step.layout().key_dim;
  for (std::uint32_t r = 0; r + 1 < step.batch().size(); ++r) {
    for (std::uint32_t head = 0; head < c.heads; ++head) {
      const std::vector<float> exact = step.query_of(r, head);
      for (std::uint32_t d = 0; d < dim; ++d) {
        const std::uint16_t bits =
            c.element == Element::kBF16 ? bf16_from_float(exact[d]) : fp16_from_float(exact[d]);
        ASSERT_EQ(step.query_after[(std::size_t{r} * c.heads + head) * dim + d], bits)
            << "row " << r << ", head " << head << ", dimension " << d;
      }
    }
  }
}

TEST_P(GpuLatents, ResultsAreTheReferencesHoweverTheWorkIsSharedOut) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const LatentCase& c = GetParam();
  LatentStep step(gpu, c);
  step.run(100000);
  // Of rows that are somebody's.
  const std::uint32_t columns = cuda::attention_columns(step.layout());
  const std::size_t values = (step.batch().size() - 1) * c.heads * columns;
  const std::vector<cuda::Bf16> got(
      step.results_after.begin(), step.results_after.begin() + static_cast<std::ptrdiff_t>(values));
  for (const std::uint32_t blocks : {1u, 40u}) {
    step.run(blocks);
    ASSERT_EQ(std::memcmp(step.results_after.data(), got.data(), values * 2), 0) << blocks;
  }
  for (std::uint32_t s = 0; s < step.sequences().size(); ++s) {
    const cuda::BatchSequence& sequence = step.sequences()[s];
    std::vector<float> keys;
    std::vector<float> latents;
    for (std::uint32_t p = 0; p < sequence.first_position + sequence.rows; ++p) {
      const std::vector<float> row = cached_row(c.element, step.row_of(s, p));
      keys.insert(keys.end(), row.begin(), row.end());
      latents.insert(latents.end(), row.begin(), row.begin() + c.rank);
    }
    for (const std::uint32_t head : {0u, c.heads - 1}) {
      const std::uint32_t r = sequence.first_row + sequence.rows - 1;
      std::vector<float> query = step.query_of(r, head);
      for (float& value : query) {
        value = c.element == Element::kBF16 ? float_from_bf16(bf16_from_float(value))
                                            : float_from_fp16(fp16_from_float(value));
      }
      std::vector<float> expected =
          cuda::reference::attention({.q = query.data(),
                                      .dim = query.size(),
                                      .value_dim = c.rank,
                                      .scale = LatentStep::kScale,
                                      .position = sequence.first_position + sequence.rows - 1,
                                      .bf16_weights = c.element == Element::kBF16},
                                     keys.data(), latents.data());
      step.turn(expected);
      double error = 0;
      double norm = 0;
      const cuda::Bf16* const row = got.data() + (std::size_t{r} * c.heads + head) * columns;
      for (std::uint32_t d = 0; d < c.rank; ++d) {
        const float value = float_from_bf16(row[d]);
        error += (value - expected[d]) * (value - expected[d]);
        norm += expected[d] * expected[d];
      }
      ASSERT_LT(std::sqrt(error / norm), 4e-3) << "sequence " << s << ", head " << head;
      for (std::uint32_t d = c.rank; d < columns; ++d) ASSERT_EQ(row[d], 0) << "padding";
    }
  }
}

// A row that is not finite is NaN to who sees it, and its request is marked.
TEST_P(GpuLatents, ARowThatIsNotFiniteIsNaNToWhoSeesItAlone) {
  REQUIRE_GPU();
  DeviceFixture gpu;
  const LatentCase& c = GetParam();
  for (const std::uint32_t d : {0u, c.rank + c.rotating - 1}) {
    LatentStep step(gpu, c);
    step.keys()[d] = INFINITY;  // of the first sequence's only row
    step.run(100000);
    const std::uint32_t marked = cuda::nonfinite_word(step.sequences()[0].first_position);
    ASSERT_EQ(step.nonfinite_after, (std::vector<std::uint32_t>{marked, 0, 0}));
    const std::size_t row = std::size_t{c.heads} * cuda::attention_columns(step.layout());
    ASSERT_TRUE(std::isnan(float_from_bf16(step.results_after[0])));
    for (std::uint32_t i = 0; i < c.rank; ++i) {
      ASSERT_TRUE(std::isfinite(float_from_bf16(step.results_after[row + i])));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuLatents, testing::ValuesIn(kLatentCases));

}  // namespace
}  // namespace pagoda::gpu_test
