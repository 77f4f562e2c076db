// The benchmarks, one file each.
#pragma once

#include "bench/bench_run.h"

namespace pagoda::bench {

void add_bench_cache(const BenchCommand& bench);
void add_bench_prefix(const BenchCommand& bench);
void add_bench_batch(const BenchCommand& bench);
void add_bench_depth(const BenchCommand& bench);
void add_bench_chunked(const BenchCommand& bench);
void add_bench_paging(const BenchCommand& bench);
void add_bench_peer(const BenchCommand& bench);
void add_bench_gpu(const BenchCommand& bench);
void add_bench_kernels(const BenchCommand& bench);
void add_bench_perplexity(const BenchCommand& bench);
void add_bench_tiers(const BenchCommand& bench);

}  // namespace pagoda::bench
