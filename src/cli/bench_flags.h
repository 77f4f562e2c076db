// The flags that benchmarks share, and how a benchmark is run and reported.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/bench_run.h"
#include "cli/flags.h"

namespace pagoda::cli {

// --threads, --kv-cache-dtype, --json
void add_machine_options(const CommandSpec& command, bench::BenchOptions& options);
// MODEL, --kv-eviction and those of the machine
void add_model_options(const CommandSpec& command, bench::BenchOptions& options);
// Those of the model, and where the engine runs it: --device and what it takes.
void add_engine_options(const CommandSpec& command, bench::BenchOptions& options);
void add_repeats_option(const CommandSpec& command, bench::BenchOptions& options);
void add_batched_tokens_option(const CommandSpec& command, bench::BenchOptions& options);
// A number of tokens, requests and the like, from `least` to 2^20. Says its default.
Flag add_count_option(const CommandSpec& command, const std::string& name, std::uint32_t& count,
                      const std::string& description, std::uint32_t least = 1);

// "pagoda bench": what its benchmarks are added to, and where they leave their exit status.
struct BenchCommand {
  CommandSpec app;
  std::string command_line;  // as typed
  int& exit_status;
};

// Runs the benchmark when `command` is chosen and prints its report. `options` are read then.
void set_benchmark(const CommandSpec& command, const BenchCommand& bench,
                   std::shared_ptr<const bench::BenchOptions> options,
                   std::function<Result<terminal::BenchReport>(const bench::BenchRun&)> benchmark);

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
void add_bench_speculate(const BenchCommand& bench);
void add_bench_structured(const BenchCommand& bench);
void add_bench_tiers(const BenchCommand& bench);
void add_bench_serve(const BenchCommand& bench);
void add_bench_agents(const BenchCommand& bench);

}  // namespace pagoda::cli
