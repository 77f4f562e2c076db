// pagoda bench: what the cache and its scheduler buy, measured on this machine.
#include "cli/bench_flags.h"
#include "cli/commands.h"

namespace pagoda::cli {

void add_bench_command(const CommandSpec& app, const std::string& command_line, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("bench", "Benchmarks of cache, scheduler, kernels and server");
  command.require_subcommand();
  command.footer(
      "Each benchmark has its own --help: pagoda bench cache --help\n"
      "Tables go to stdout with their machine and command; progress goes to stderr.");
  const BenchCommand bench = {command, command_line, exit_status};
  add_bench_cache(bench);
  add_bench_prefix(bench);
  add_bench_batch(bench);
  add_bench_depth(bench);
  add_bench_chunked(bench);
  add_bench_paging(bench);
  add_bench_peer(bench);
  add_bench_gpu(bench);
  add_bench_kernels(bench);
  add_bench_perplexity(bench);
  add_bench_speculate(bench);
  add_bench_structured(bench);
  add_bench_tiers(bench);
  add_bench_serve(bench);
  add_bench_agents(bench);
}

}  // namespace pagoda::cli
