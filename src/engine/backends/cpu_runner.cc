#include "engine/backends/cpu_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/nonfinite_rows.h"

namespace pagoda::engine {

#ifdef PAGODA_DEV_CHECKS
namespace {

// Blocks that a launch begins hold nothing yet: whoever reads a row before it is written gets NaN.
void spoil_new_blocks(const Launch& launch, const kv::memory::PageBuffer& pages) {
  const std::uint64_t block_tokens = pages.layout().block_tokens;
  for (const LaunchRows& rows : launch.rows) {
    for (std::uint32_t group = 0; group < rows.tables.size(); ++group) {
      const std::uint64_t begin = rows.selected.slot(group, rows.first_position);
      const std::uint64_t first = (begin + block_tokens - 1) / block_tokens;
      for (std::uint64_t b = first; b * block_tokens < begin + rows.rows; ++b) {
        pages.fill_with_nan(rows.tables[group][b]);
      }
    }
  }
}

}  // namespace
#endif

CpuRunner::CpuRunner(model::Decoder& decoder, const kv::memory::PageBuffer& pages, ThreadPool& pool)
    : decoder_(decoder),
      pages_(pages),
      pool_(pool),
      masks_(decoder.rows_max(), pool.threads() > 1) {
  const std::size_t vocabulary = decoder.config().vocabulary;
  const std::size_t rows = std::min<std::size_t>(kLogitRowsMax, decoder.rows_max());
  logits_.resize(rows * vocabulary);
  tokens_.reserve(decoder.rows_max());
  nonfinite_.reserve(decoder.rows_max());
  for (std::size_t i = 0; i < pool.threads(); ++i) {
    scratch_.emplace_back(decoder.kernel_set(), vocabulary);
  }
}

void CpuRunner::launch(const Launch& launch) {
  for (const kv::Copy& copy : launch.copies) {
    kv::memory::copy_rows(decoder_.group_plan().layouts[copy.group], pages_.page(copy.from),
                          pages_.page(copy.to), copy.tokens);
  }
#ifdef PAGODA_DEV_CHECKS
  spoil_new_blocks(launch, pages_);
#endif
  masks_.begin(launch.samples);
  forward(launch);
  samples_.assign(place_results(launch.samples, progress_), Result<SampledToken>(SampledToken{}));
  scores_.assign(launch.scores.size(), TokenScore{});
  hidden_.resize(launch.hidden_rows.size() * decoder_.config().width);
  if (!hidden_.empty()) decoder_.hidden(launch.hidden_rows, hidden_.data());
  list_logit_rows(launch, logit_rows_);
  const std::size_t group = logits_.size() / decoder_.config().vocabulary;
  for (std::size_t begin = 0; begin < logit_rows_.size(); begin += group) {
    const std::size_t count = std::min(group, logit_rows_.size() - begin);
    const auto rows = std::span<const std::uint32_t>(logit_rows_).subspan(begin, count);
    decoder_.logits(rows, logits_.data());
    masks_.wait();
    use_logits(launch, rows);
  }
}

void CpuRunner::forward(const Launch& launch) {
  tokens_.clear();
  sequences_.clear();
  for (const LaunchRows& rows : launch.rows) {
    ASSERT(rows.tokens.size() + rows.drafts.size() == rows.rows,
           "nothing is launched ahead here: all tokens are known");
    tokens_.insert(tokens_.end(), rows.tokens.begin(), rows.tokens.end());
    tokens_.insert(tokens_.end(), rows.drafts.begin(), rows.drafts.end());
    sequences_.push_back({rows.rows, rows.first_position, rows.tables, rows.policy, rows.selected});
  }
  decoder_.forward({.tokens = tokens_, .sequences = sequences_, .logit_rows = {}}, pages_, nullptr);
  nonfinite_.clear();
  std::size_t first = 0;
  for (const LaunchRows& rows : launch.rows) {
    nonfinite_.push_back(first_nonfinite(decoder_.nonfinite_rows().subspan(first, rows.rows)));
    first += rows.rows;
  }
}

// Samples and scores whose rows are among `rows`, whose logits were just computed.
void CpuRunner::use_logits(const Launch& launch, std::span<const std::uint32_t> rows) {
  const std::size_t vocabulary = decoder_.config().vocabulary;
  const auto logits_of = [&](std::uint32_t row) -> std::span<const float> {
    const auto at = std::lower_bound(rows.begin(), rows.end(), row);
    if (at == rows.end() || *at != row) return {};
    return std::span(logits_).subspan(static_cast<std::size_t>(at - rows.begin()) * vocabulary,
                                      vocabulary);
  };
  pool_.run(launch.samples.size() + launch.scores.size(), [&](WorkRange range) {
    SamplerScratch& scratch = scratch_[range.thread];
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (i < launch.samples.size()) {
        const LaunchSample& sample = launch.samples[i];
        sample_rows(
            sample, progress_[i], samples_,
            [&](std::uint32_t row) { return logits_of(sample.row + row); }, scratch);
        continue;
      }
      const std::size_t score = i - launch.samples.size();
      const auto logits = logits_of(launch.scores[score].row);
      if (!logits.empty()) scores_[score] = score_row(logits, launch.scores[score], scratch);
    }
  });
}

Collected CpuRunner::collect() { return {samples_, scores_, nullptr, nonfinite_, hidden_}; }

}  // namespace pagoda::engine
