#include "engine/backends/sample_row.h"

#include <algorithm>
#include <limits>

#include "engine/logprobs.h"

namespace pagoda::engine {
namespace {

// Copies the best tokens out of the scratch, which serves the next row.
TokenScore copy_score(const Logprobs& logprobs) {
  return {logprobs.chosen, {logprobs.top.begin(), logprobs.top.end()}};
}

}  // namespace

void list_logit_rows(const Launch& launch, std::vector<std::uint32_t>& rows) {
  rows.clear();
  for (const LaunchSample& sample : launch.samples) {
    for (std::uint32_t i = 0; i <= sample.drafts.size(); ++i) rows.push_back(sample.row + i);
  }
  for (const LaunchScore& score : launch.scores) rows.push_back(score.row);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

Result<SampledToken> sample_row(std::span<const float> logits, const LaunchSample& sample,
                                SamplerScratch& scratch) {
  RETURN_IF_ERROR(sample.sampling->prepare());
  ASSIGN_OR_RETURN(const Sampled sampled,
                   engine::sample(logits, *sample.sampling, scratch, sample.position));
  sample.sampling->accept(sampled.token);
  const std::optional<TokenConstraint>& constraint = sample.sampling->constraint();
  SampledToken choice = {.token = sampled.token,
                         .score = std::nullopt,
                         .ends_grammar = constraint && constraint->has_ended()};
  if (sampled.logprobs) choice.score = copy_score(*sampled.logprobs);
  return choice;
}

std::uint32_t place_results(std::span<const LaunchSample> samples,
                            std::vector<SampleProgress>& progress) {
  progress.clear();
  std::uint32_t results = 0;
  for (const LaunchSample& sample : samples) {
    progress.push_back({.first = results});
    results += 1 + static_cast<std::uint32_t>(sample.drafts.size());
  }
  return results;
}

bool accepts_draft(const LaunchSample& sample, std::uint32_t row,
                   const Result<SampledToken>& result) {
  return row < sample.drafts.size() && result.ok() && !result.value().ends_grammar &&
         result.value().token == sample.drafts[row];
}

TokenScore score_row(std::span<const float> logits, const LaunchScore& score,
                     SamplerScratch& scratch) {
  if (score.reader != nullptr) score.reader->on_logits(score.position, logits);
  const auto found = find_logprobs(logits, score.token, score.top, scratch, 0);
  if (found.ok()) return copy_score(found.value());
  return {{score.token, std::numeric_limits<float>::quiet_NaN(), 0}, {}};
}

}  // namespace pagoda::engine
