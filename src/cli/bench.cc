// pagoda bench: what the cache and its scheduler buy, measured on this machine.
#include "bench/benchmarks.h"

#include "cli/commands.h"

namespace pagoda::cli {

void add_bench_command(CLI::App& app, const std::string& command_line, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("bench", "Measure what the cache and its scheduler buy");
  command->require_subcommand(1);
  command->footer(
      "Each benchmark has its own --help: pagoda bench cache --help\n"
      "Tables go to stdout with their machine and command; progress goes to stderr.");
  const bench::BenchCommand bench = {*command, command_line, exit_status};
  bench::add_bench_cache(bench);
  bench::add_bench_prefix(bench);
  bench::add_bench_batch(bench);
  bench::add_bench_depth(bench);
  bench::add_bench_chunked(bench);
  bench::add_bench_paging(bench);
  bench::add_bench_peer(bench);
  bench::add_bench_gpu(bench);
  bench::add_bench_kernels(bench);
  bench::add_bench_perplexity(bench);
  bench::add_bench_tiers(bench);
  add_bench_serve(bench);
}

}  // namespace pagoda::cli
