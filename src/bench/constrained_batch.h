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

struct ConstrainedBatch {
  double none = 0;  // tokens per second, like all of them
  double one = 0;
  double all = 0;
};

// Runs the model of the run's options; the vocabulary is its own.
Result<ConstrainedBatch> measure_constrained_batch(
    const BenchRun& run, std::shared_ptr<const structured::MaskVocabulary> vocabulary,
    std::uint32_t repeats);

}  // namespace pagoda::bench
