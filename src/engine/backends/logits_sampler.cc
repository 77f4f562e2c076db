#include "engine/backends/logits_sampler.h"

#include <algorithm>

namespace pagoda::engine {

LogitsSampler::LogitsSampler(const kernels::KernelSet& kernels, std::size_t vocabulary,
                             std::size_t rows_max, ThreadPool& pool)
    : vocabulary_(vocabulary), pool_(pool), masks_(rows_max, pool.threads() > 1) {
  logits_.resize(std::min(kRowsMax, rows_max) * vocabulary);
  for (std::size_t i = 0; i < pool.threads(); ++i) scratch_.emplace_back(kernels, vocabulary);
}

void LogitsSampler::begin(const Launch& launch) {
  masks_.begin(launch.samples);
  samples_.assign(place_results(launch.samples, progress_), Result<SampledToken>(SampledToken{}));
  scores_.assign(launch.scores.size(), TokenScore{});
  list_logit_rows(launch, rows_);
}

// Samples and scores whose rows are among `rows`, whose logits were just computed.
void LogitsSampler::use_logits(const Launch& launch, std::span<const std::uint32_t> rows) {
  const auto logits_of = [&](std::uint32_t row) -> std::span<const float> {
    const auto at = std::lower_bound(rows.begin(), rows.end(), row);
    if (at == rows.end() || *at != row) return {};
    return std::span(logits_).subspan(static_cast<std::size_t>(at - rows.begin()) * vocabulary_,
                                      vocabulary_);
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

}  // namespace pagoda::engine
