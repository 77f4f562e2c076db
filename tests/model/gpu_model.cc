#include "model/gpu_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <utility>

#include "base/thread_pool.h"
#include "kv/memory/page_buffer.h"

namespace pagoda::gpu_test {
namespace {

template <class T>
T value_or_exit(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

// Pages full of NaN and shuffled tables over them, twice as many as are used.
class GpuTables {
 public:
  GpuTables(model::GpuDecoder& decoder, const std::vector<model::Tokens>& sequences,
            std::uint64_t seed) {
    const std::size_t groups = decoder.group_plan().groups.size();
    const std::uint32_t block = decoder.page_layout().block_tokens;
    std::size_t blocks = 0;
    for (const model::Tokens& tokens : sequences) blocks += (tokens.size() + block - 1) / block;
    const std::size_t pages = 2 * blocks * groups;
    pages_ = value_or_exit(
        device::Buffer::allocate(pages * decoder.page_layout().page_bytes(), "test pages"));
    value_or_exit(decoder.stream().fill(pages_.data(), 0xFF, pages_.bytes()));
    decoder.set_pages(pages_.data());
    std::vector<kv::BlockId> ids;
    for (std::uint32_t i = 0; i < pages; ++i) ids.push_back(kv::BlockId(i));
    for (std::size_t i = ids.size(); i > 1; --i) {
      std::swap(ids[i - 1], ids[random_bits(seed, 0, i) % i]);
    }
    tables_.resize(sequences.size());
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      for (std::size_t group = 0; group < groups; ++group) {
        const std::size_t own = (sequences[s].size() + block - 1) / block;
        storage_.emplace_back(ids.end() - static_cast<std::ptrdiff_t>(own), ids.end());
        ids.resize(ids.size() - own);
        tables_[s].push_back(storage_.back().data());
      }
    }
  }
  std::span<const kv::memory::BlockTable> of(std::size_t sequence) const {
    return tables_[sequence];
  }

 private:
  device::Buffer pages_;
  std::deque<std::vector<kv::BlockId>> storage_;
  std::vector<std::vector<kv::memory::BlockTable>> tables_;
};

// Fetches the logits of all rows of a step, as many at a time as the decoder has memory for.
void fetch_logits(model::GpuDecoder& decoder, std::size_t rows, std::vector<float>& out) {
  const std::size_t vocabulary = decoder.config().vocabulary;
  out.resize(rows * vocabulary);
  for (std::size_t begin = 0; begin < rows; begin += decoder.logit_rows_max()) {
    const std::size_t count = std::min<std::size_t>(decoder.logit_rows_max(), rows - begin);
    std::vector<std::uint32_t> wanted(count);
    for (std::size_t i = 0; i < count; ++i) wanted[i] = static_cast<std::uint32_t>(begin + i);
    if (begin > 0 || count != rows) value_or_exit(decoder.logits(wanted));
    value_or_exit(decoder.stream().copy_to_host(
        reinterpret_cast<std::byte*>(out.data() + begin * vocabulary),
        reinterpret_cast<const std::byte*>(decoder.logits_data()), count * vocabulary * 4));
    value_or_exit(decoder.stream().wait());
  }
}

}  // namespace

std::vector<model::Logits> run_on_gpu(const model::Config& config, const model::Weights& weights,
                                      const GpuConditions& conditions,
                                      const std::vector<model::Tokens>& sequences) {
  std::size_t longest = 0;
  std::size_t rows_max = 0;
  for (const model::Tokens& tokens : sequences) {
    longest = std::max(longest, tokens.size());
    rows_max += conditions.chunk == 0 ? tokens.size()
                                      : std::min<std::size_t>(conditions.chunk, tokens.size());
  }
  ThreadPool pool(usable_cores());
  const auto decoder = value_or_exit(model::GpuDecoder::create(
      config,
      value_or_exit(
          model::GpuWeights::upload(weights, pool, {.staging_bytes = conditions.staging_bytes})),
      weights.rope_frequencies,
      {.rows_max = static_cast<std::uint32_t>(rows_max),
       .sequences_max = static_cast<std::uint32_t>(std::max<std::size_t>(sequences.size(), 64)),
       .context_tokens = conditions.context == 0 ? longest : conditions.context,
       .kv_cache_dtype = conditions.kv_cache_dtype,
       .block_tokens = conditions.block_tokens,
       .graphs = conditions.graphs}));
  const GpuTables tables(*decoder, sequences, conditions.shuffle_seed);
  std::vector<model::Logits> result(sequences.size());
  std::vector<float> logits;
  for (std::size_t begin = 0; begin < longest;) {
    const std::size_t chunk = conditions.chunk == 0 ? longest : conditions.chunk;
    std::vector<model::GpuRows> rows;
    std::vector<std::size_t> owner;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      if (begin >= sequences[s].size()) continue;
      const std::size_t count = std::min(chunk, sequences[s].size() - begin);
      rows.push_back({.rows = static_cast<std::uint32_t>(count),
                      .first_position = begin,
                      .tokens = std::span(sequences[s]).subspan(begin, count),
                      .tables = tables.of(s),
                      .policy = conditions.policy});
      owner.insert(owner.end(), count, s);
    }
    std::vector<std::uint32_t> wanted;
    if (owner.size() <= decoder->logit_rows_max()) {
      for (std::uint32_t i = 0; i < owner.size(); ++i) wanted.push_back(i);
    }
    value_or_exit(decoder->forward(rows, wanted));
    value_or_exit(decoder->stream().wait());
    if (conditions.chosen != nullptr) {
      conditions.chosen->resize(owner.size() * config.experts.router.chosen);
      value_or_exit(decoder->stream().copy_to_host(
          reinterpret_cast<std::byte*>(conditions.chosen->data()),
          reinterpret_cast<const std::byte*>(decoder->chosen_experts()),
          conditions.chosen->size() * sizeof(kernels::ChosenExpert)));
    }
    fetch_logits(*decoder, owner.size(), logits);
    for (std::size_t i = 0; i < owner.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * config.vocabulary);
      result[owner[i]].insert(result[owner[i]].end(), row, row + config.vocabulary);
    }
    begin += chunk;
  }
  return result;
}

model::Logits run_on_cpu(const model::Config& config, const model::Weights& weights,
                         const model::Tokens& tokens, kv::memory::AttentionSpec policy) {
  ThreadPool pool(usable_cores());
  // The fastest set of fp32 numerics.
  const kernels::KernelSet* kernels = &kernels::ref_set();
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set->numerics == kernels::Numerics::kFp32) kernels = set;
  }
  const auto rows = static_cast<std::uint32_t>(tokens.size());
  model::Decoder decoder(config, weights, *kernels, pool,
                         {.rows_max = rows, .kv_cache_dtype = {kv::memory::Element::kF32}});
  const std::size_t groups = decoder.group_plan().groups.size();
  const std::uint32_t blocks = (rows + 15) / 16;
  const auto pages = value_or_exit(kv::memory::PageBuffer::allocate(
      decoder.page_layout(), static_cast<std::uint32_t>(blocks * groups)));
  std::vector<kv::BlockId> ids;
  for (std::uint32_t i = 0; i < blocks * groups; ++i) ids.push_back(kv::BlockId(i));
  std::vector<kv::memory::BlockTable> tables;
  for (std::size_t s = 0; s < groups; ++s) tables.push_back(ids.data() + s * blocks);
  const model::SequenceRows sequence = {
      .rows = rows, .first_position = 0, .tables = tables, .policy = policy};
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < rows; ++i) wanted.push_back(i);
  model::Logits logits(tokens.size() * config.vocabulary);
  decoder.forward({tokens, {&sequence, 1}, wanted}, pages, logits.data());
  return logits;
}

}  // namespace pagoda::gpu_test
