// LogitsSampler turns the logits of a launch into its samples and scores, on this host's cores. It
// is the second half of runners whose logits come to host memory.
//
// Thread rule: as Runner; it uses the pool given at construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/backends/mask_thread.h"
#include "engine/backends/sample_row.h"
#include "engine/runner.h"

namespace pagoda::kernels {
struct KernelSet;
}

namespace pagoda::engine {

class LogitsSampler {
 public:
  // At most so many rows of logits are computed together: this bounds their memory, [kRowsMax,
  // vocabulary].
  static constexpr std::size_t kRowsMax = 64;

  // Kernels and the pool must outlive the sampler. A launch has at most `rows_max` rows.
  LogitsSampler(const kernels::KernelSet& kernels, std::size_t vocabulary, std::size_t rows_max,
                ThreadPool& pool);

  // Begins a launch: the masks of grammars, which need no logits. Its samples stay where they are
  // until sample() returns.
  void begin(const Launch& launch);
  // Returns the rows of the launch whose logits are wanted, in order.
  std::span<const std::uint32_t> rows() const { return rows_; }
  std::size_t rows_together() const { return logits_.size() / vocabulary_; }

  // Calls compute(rows, logits) for a few rows at a time, which fills [rows, vocabulary], and uses
  // them. False, at once, where that returns false.
  template <class Compute>
  bool sample(const Launch& launch, const Compute& compute) {
    for (std::size_t begin = 0; begin < rows_.size(); begin += rows_together()) {
      const std::size_t count = std::min(rows_together(), rows_.size() - begin);
      const auto rows = std::span<const std::uint32_t>(rows_).subspan(begin, count);
      if (!compute(rows, std::span(logits_).first(count * vocabulary_))) {
        masks_.wait();
        return false;
      }
      masks_.wait();
      use_logits(launch, rows);
    }
    return true;
  }

  std::span<Result<SampledToken>> samples() { return samples_; }
  std::span<const TokenScore> scores() const { return scores_; }

 private:
  void use_logits(const Launch& launch, std::span<const std::uint32_t> rows);

  std::size_t vocabulary_;
  ThreadPool& pool_;
  std::vector<std::uint32_t> rows_;
  std::vector<float> logits_;
  std::vector<SamplerScratch> scratch_;  // [thread]
  MaskThread masks_;
  std::vector<SampleProgress> progress_;  // [sample]
  std::vector<Result<SampledToken>> samples_;
  std::vector<TokenScore> scores_;
};

}  // namespace pagoda::engine
