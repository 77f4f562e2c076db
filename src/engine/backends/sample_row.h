// Samples and scores by rows of logits in host memory; runners of every device use it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/runner.h"
#include "engine/sampled_token.h"
#include "engine/sampler.h"

namespace pagoda::engine {

// Sets `rows` to the rows of a launch whose logits are needed, ascending, each once.
void list_logit_rows(const Launch& launch, std::vector<std::uint32_t>& rows);

// Samples a token by `logits`; the sequence's sampling state counts it.
Result<SampledToken> sample_row(std::span<const float> logits, const LaunchSample& sample,
                                SamplerScratch& scratch);

// The results of a sample begin at `first`, one for each row that may be sampled; row `next` of the
// sample is the one that is sampled next.
struct SampleProgress {
  std::uint32_t first = 0;
  std::uint32_t next = 0;
};
// Sets `progress`, [sample], to its beginning, and returns how many results there are.
std::uint32_t place_results(std::span<const LaunchSample> samples,
                            std::vector<SampleProgress>& progress);

// True: a sample whose row `row` gave this goes on with the row behind it, whose token was drafted
// rightly.
bool accepts_draft(const LaunchSample& sample, std::uint32_t row,
                   const Result<SampledToken>& result);

// Samples the rows of one sample in order, as far as their logits are there. Each token changes
// what the next is sampled by; the first that is not the next row's draft token is the last.
// logits_of(row of the sample): empty where they are not computed yet.
template <class LogitsOf>
void sample_rows(const LaunchSample& sample, SampleProgress& progress,
                 std::span<Result<SampledToken>> results, const LogitsOf& logits_of,
                 SamplerScratch& scratch) {
  const auto drafts = static_cast<std::uint32_t>(sample.drafts.size());
  while (progress.next <= drafts) {
    const std::uint32_t i = progress.next;
    const std::span<const float> logits = logits_of(i);
    if (logits.empty()) return;
    LaunchSample row = sample;
    row.row += i;
    row.position += i;
    Result<SampledToken>& result = results[progress.first + i];
    result = sample_row(logits, row, scratch);
    progress.next = accepts_draft(sample, i, result) ? i + 1 : drafts + 1;
  }
}

// Returns the log-probability of a known token. Logits that are not finite give NaN: the request
// ends when its own token is sampled.
TokenScore score_row(std::span<const float> logits, const LaunchScore& score,
                     SamplerScratch& scratch);

}  // namespace pagoda::engine
