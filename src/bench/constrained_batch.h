// Measures the cost of grammars in a batch: tokens per second of 16 sequences that decode together,
// of which none, one or all obey a grammar.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "bench/bench_run.h"
#include "structured/mask_vocabulary.h"

namespace pagoda::bench {

inline constexpr std::uint32_t kConstrainedBatch = 16;

// Medians over the rounds. A ratio is taken within a round, whose measurements are seconds apart:
// between rounds a shared machine may become twice as fast.
struct ConstrainedBatch {
  struct Rate {
    double tokens_per_second = 0;
    double ratio = 1;  // to that of no grammar in the same round
  };
  Rate none;
  Rate one;
  Rate all;
};

// Runs the model of the run's options; the vocabulary is its own.
Result<ConstrainedBatch> measure_constrained_batch(
    const BenchRun& run, std::shared_ptr<const structured::MaskVocabulary> vocabulary,
    std::uint32_t repeats);

}  // namespace pagoda::bench
