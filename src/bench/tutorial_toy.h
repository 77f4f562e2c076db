// The toy of KV cache tutorials, measured as they measure it (bench/plain_attention.h).
#pragma once

#include "bench/benchmarks.h"

namespace pagoda::bench {

// One head over given random vectors, without a cache and with one: without, every new vector goes
// through attention together with all before it; with, the prompt once and then one vector at a
// time. Both sides are warmed up, and times are means, as in the tutorials. Of the options
// `hidden_size`, `seed`, `prompt_tokens`, `new_tokens` and `repeats` count.
Result<terminal::BenchReport> bench_tutorial(const BenchCacheOptions& options, const BenchRun& run);

}  // namespace pagoda::bench
